#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# packages.sh <source> <scratch>: what cmake/packages.sh asks apt for, and what it does not: it
# upgrades, removes and adds architectures only where that was asked for, says what it installs,
# and asks a second time for nothing that it could not have. No real apt is called.
set -euo pipefail
rm -rf "$2"
mkdir -p "$2/cmake" "$2/bin"
cp "$1/cmake/packages.sh" "$2/cmake/"
cd "$2"
export CALLS=$PWD/calls
cat >bin/apt-get <<'END'
#!/bin/sh
echo "apt-get $*" >>"$CALLS"
case "$* " in
  *" -s "*) ;;
  *install*) exec >>"$CALLS.installed"; for word; do echo "$word"; done; exit ;;
  *) exit ;;
esac
for package; do
  case $package in
    unknown) exit 100 ;;
    upgrades) echo "Inst libssl3 [1.0] (2.0 Debian [amd64])" ;;
    removes) echo "Remv vim [1.0]" ;;
  esac
done
echo "Inst libfoo5 (1.0 Debian [amd64])"
END
cat >bin/dpkg-query <<'END'
#!/bin/sh
for package; do :; done  # the last word
grep -qx "$package" "$CALLS.installed" && echo "installed "
END
cat >bin/dpkg <<'END'
#!/bin/sh
echo "dpkg $*" >>"$CALLS"
[ "$1" != --print-architecture ] || echo amd64
END
printf '#!/bin/sh\necho 0\n' >bin/id  # root, so far as the script can see
chmod +x bin/*
touch "$CALLS.installed"
run() {
  : >"$CALLS"
  PATH=$PWD/bin:$PATH bash cmake/packages.sh build test >output
}
fail() {
  echo "$1"
  cat output "$CALLS" "$CALLS.installed"
  exit 1
}
has() { grep -qxe "$1" "$CALLS.installed"; }

printf '%s\n' '# comment' 'build good everything' 'test unknown the tests' 'test upgrades rows' \
  'test removes columns' 'test libc:arm64 the other architecture' 'soak libd more' \
  >cmake/packages.txt
export MUSTER_INSTALL=no
run
! grep -q '^apt-get' "$CALLS" || fail "MUSTER_INSTALL=no touches apt"
grep -q 'good  *left out: everything' output || fail "MUSTER_INSTALL=no does not say what it lacks"

export MUSTER_INSTALL=
run
has good || fail "good was not installed"
grep -q 'Installing: libfoo5' output || fail "what is installed is not said"
! has upgrades && ! has removes && ! has libc:arm64 || fail "installed what nobody asked for"
has --no-remove || fail "apt may remove"
! grep -q 'add-architecture' "$CALLS" || fail "an architecture was added"
! grep -q libd "$CALLS" || fail "libd is for another purpose"
for line in 'unknown  *left out: the tests$' 'upgrades  *left out: rows (upgrades libssl3)' \
  'removes  *left out: columns (removes vim)' '(needs the architecture arm64)' \
  'MUSTER_INSTALL=all' 'rm build/packages.failed'; do
  grep -q "$line" output || fail "it does not say: $line"
done

run
! grep -q '^apt-get' "$CALLS" || fail "the second run touches apt"
grep -q 'upgrades  *left out: rows (upgrades libssl3)' output || fail "the second run is silent"

echo 'test new the rest' >>cmake/packages.txt
run
has new || fail "a new package was not asked for"
! grep -q '^apt-get .*unknown' "$CALLS" || fail "an old one was asked for again"

MUSTER_INSTALL=all run
has upgrades && has libc:arm64 || fail "not installed though it was asked for"
grep -q 'upgrades libssl3' output || fail "the upgrade is not said"
grep -q 'add-architecture arm64' "$CALLS" || fail "no architecture was added"
! has removes || fail "it removes"
! grep -q '^apt-get .*unknown' "$CALLS" || fail "what cannot be had was asked for again"
MUSTER_INSTALL=all run
! grep -q '^apt-get' "$CALLS" || fail "what would remove was asked for again"

rm build/packages.failed
run
grep -q '^apt-get .*install .*unknown' "$CALLS" || fail "not tried again"

asked=$(make -s -n -C "$1" install DESTDIR="$PWD" | grep packages.sh)
[ "$asked" = "cmake/packages.sh build" ] || fail "make install asks for more than it builds: $asked"
