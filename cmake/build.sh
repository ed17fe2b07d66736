#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# build.sh <preset> [target...]: configures build/<preset> when needed, and builds it.
# Says how far it is, no more, unless something is wrong: the whole output is in build/<preset>.log.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
tree=build/$preset
log=$tree.log
mkdir -p build

command -v cmake >/dev/null || { echo "No cmake: install the package cmake." >&2; exit 1; }
if [ ! -f "$tree/CMakeCache.txt" ] && [ -z "${CMAKE_GENERATOR:-}" ] && command -v ninja >/dev/null
then
  export CMAKE_GENERATOR=Ninja
fi
export CCACHE_DEPEND=${CCACHE_DEPEND:-1}  # on a miss, do not preprocess before compiling
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

fail() {
  cat "$log"
  echo "Building $tree failed (above, and in $log)." >&2
  exit 1
}

# "[12/345] ..." of ninja and "[ 12%] ..." of make, every twenty seconds; in a terminal on one line.
progress() {
  local line said=$SECONDS before="" after="\n"
  if [ -t 1 ]; then
    before="\r" after=""
  fi
  while IFS= read -r line; do
    echo "$line" >>"$log"
    [[ $line =~ ^\[\ *([0-9/%]+)\] ]] || continue
    [ -n "$before" ] || [ $((SECONDS - said)) -ge 20 ] || continue
    printf "$before  built %s$after" "${BASH_REMATCH[1]/\// of }"
    said=$SECONDS
  done
  [ -z "$before" ] || printf '\r%20s\r' ""
}

echo "Building $tree"
cmake --preset "$preset" >"$log" 2>&1 || fail
sed -n 's/^-- left out:/  left out:/p' "$log"
cmake --build --preset "$preset" ${@:+--target "$@"} 2>&1 | progress || fail
