#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# build.sh <preset> [target...]: configures build/<preset> when needed, and builds it.
# Quiet unless something is wrong: the whole output is in build/<preset>.log.
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
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

fail() {
  cat "$log"
  echo "Building $tree failed (above, and in $log)." >&2
  exit 1
}
echo "Building $tree"
cmake --preset "$preset" >"$log" 2>&1 || fail
sed -n 's/^-- left out:/  left out:/p' "$log"
cmake --build --preset "$preset" ${@:+--target "$@"} >>"$log" 2>&1 || fail
