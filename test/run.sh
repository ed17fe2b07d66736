#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh check|test|all|cross: builds what these tests need, runs them, and says how it goes: a line
# for each test when it ends. At the end what was skipped and why, what failed, and the verdict.
#
#   check  of the release build what takes some seconds at most, but for the hundred jobs of MPI
#   test   of the release build all but what is labelled thorough
#   all    that, and then the rest:
#     release     tests labelled thorough
#     asan        tests of the suites memory and concurrency, AddressSanitizer and UBSan
#     tsan        those of concurrency, ThreadSanitizer
#     tsan-clang  those of races, clang's ThreadSanitizer
#     aarch64     those of concurrency, cross-compiled, under qemu-user
#   cross  the suite foreign, cross-compiled for s390x, riscv64 and ppc64le, under qemu-user
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1
top=$PWD
logs=$top/build/test
rm -rf "$logs"
mkdir -p "$logs/rest"

# A suite that cannot be built here stays in the list, as a skipped test with its reason.
leave_out() {
  echo "  left out: $1 ($2)"
  cat >>"$logs/rest/CTestTestfile.cmake" <<END
add_test($1 sh -c "echo 'skipped: $2'; exit 77")
set_tests_properties($1 PROPERTIES SKIP_RETURN_CODE 77 LABELS thorough)
END
}

# Why a preset cannot be built and run here; empty if it can.
why_not() {
  local lib=/usr/lib/aarch64-linux-gnu triplet=${1/ppc64le/powerpc64le}-linux-gnu
  case $1 in
    aarch64 | s390x | riscv64 | ppc64le)
      [ "$(uname -m)" != "$1" ] || { echo "this is $1: the release suite is it"; return; }
      command -v "$triplet-g++" >/dev/null || { echo "package g++-$triplet"; return; }
      command -v "qemu-$1" >/dev/null || { echo "package qemu-user"; return; }
      ;;&
    aarch64)
      [ -e $lib/pkgconfig/hwloc.pc ] && [ -e $lib/libstdc++.so.6 ] ||
        echo "packages of arm64: MUSTER_INSTALL=all make test-all"
      ;;
    s390x | riscv64 | ppc64le)
      cmake/foreign-hwloc.sh "$1" >&2 || echo "no hwloc for it: build/foreign/$1.log"
      ;;
    tsan-clang)
      command -v clang++ >/dev/null || { echo "package clang"; return; }
      echo 'int main() {}' | clang++ -fsanitize=thread -x c++ - -o "$logs/probe" 2>/dev/null ||
        echo "package libclang-rt-dev"
      ;;
  esac
}

# run <name> <build tree> <ctest argument...>: runs these tests, and adds up what comes out.
ran=0 failed=0
run() {
  local name=$logs/$1 tree=$2
  shift 2
  set -- --test-dir "$tree" "$@"
  : >"$name.failed"
  echo "no test ran" >"$name.verdict"
  ctest "$@" --show-only=json-v1 | awk -F '"' '
    $2 == "name" && length($1) == 6 { test = $4; cost[test] = 1 }
    $2 == "name" && $4 == "COST" { getline; sub(/.*: */, ""); cost[test] = int($0) }
    END { for (test in cost) print test, cost[test] }' >"$name.costs"
  # One more than CPUs, since tests wait, too. None is judged by how long it takes.
  ctest "$@" -j "$(($(nproc) + 1))" --output-on-failure --no-label-summary --no-tests=error 2>&1 |
    test/follow.sh "$name" || true
  cp "$tree/Testing/Temporary/LastTest.log" "$name.log"
  grep -q ' Testing: ' "$name.log" || { echo "ctest's log of these tests is gone"; exit 1; }
  [[ $(<"$name.verdict") =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+)$ ]] ||
    { cat "$name.verdict"; exit 1; }
  failed=$((failed + BASH_REMATCH[1]))
  ran=$((ran + BASH_REMATCH[2]))
}

minutes() { echo "$(((SECONDS + 30) / 60)) minutes"; }

# thorough <preset>...: builds them and runs what is labelled thorough there, all in one ctest.
thorough() {
  local preset reason
  for preset; do
    reason=$(why_not "$preset")
    if [ -n "$reason" ]; then
      leave_out "$preset" "$reason"
      continue
    fi
    cmake/build.sh "$preset"
    echo "subdirs(\"$top/build/$preset\")" >>"$logs/rest/CTestTestfile.cmake"
    # An empty suite would pass in silence: labels gone wrong are a failure.
    if ctest --test-dir "build/$preset" -N -L '^thorough$' | grep -q '^Total Tests: 0'; then
      echo "add_test($preset.has-tests false)
        set_tests_properties($preset.has-tests PROPERTIES LABELS thorough)" \
        >>"$logs/rest/CTestTestfile.cmake"
    fi
  done
  run rest "$logs/rest" -L '^thorough$'
}

[ "$what" = cross ] || cmake/build.sh release muster-tests
case $what in
  check) run check build/release -L '^quick$' -LE '^(thorough|mpi)$' ;;
  test) run test build/release -LE '^thorough$' ;;
  all)
    run test build/release -LE '^thorough$'
    echo "make test: $ran tests, $failed failed, after $(minutes)"
    thorough release asan tsan tsan-clang aarch64
    ;;
  cross) thorough s390x riscv64 ppc64le ;;
esac

awk -f test/skipped.awk "$logs"/*.log
sed 's/^/failed: /' "$logs"/*.failed
echo "$((100 * (ran - failed) / ran))% tests passed, $failed tests failed out of $ran, $(minutes)"
[ $failed = 0 ]
