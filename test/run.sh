#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh check|test|all: builds what these tests need, runs them, and says how it goes: a line for
# each test when it ends. At the end what was skipped and why, what failed, and the verdict.
#
#   check  of the release build what takes a second or two
#   test   of the release build all but what is labelled thorough
#   all    that, and then the rest:
#     release     tests labelled thorough
#     asan        tests of the suites memory and concurrency, AddressSanitizer and UBSan
#     tsan        those of concurrency, ThreadSanitizer
#     tsan-clang  those of races, clang's ThreadSanitizer
#     aarch64     those of concurrency, cross-compiled, under qemu-user
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

why_not_aarch64() {
  local lib=/usr/lib/aarch64-linux-gnu
  [ "$(uname -m)" = x86_64 ] || { echo "only from x86-64; this is $(uname -m)"; return; }
  command -v aarch64-linux-gnu-g++ >/dev/null || { echo "package g++-aarch64-linux-gnu"; return; }
  command -v qemu-aarch64 >/dev/null || { echo "package qemu-user"; return; }
  [ -e $lib/pkgconfig/hwloc.pc ] && [ -e $lib/libstdc++.so.6 ] ||
    echo "packages of arm64: MUSTER_INSTALL=all make test-all"
}

why_not_tsan_clang() {
  command -v clang++ >/dev/null || { echo "package clang"; return; }
  echo 'int main() {}' | clang++ -fsanitize=thread -x c++ - -o "$logs/probe" 2>/dev/null ||
    echo "package libclang-rt-dev"
}

# Reads ctest's output: a line for each test that ends, and what is left by the costs of the rest.
follow() {
  local line part name result seconds cost done_cost=0 all_cost=0 n=0 all left said=$SECONDS
  local begin=$SECONDS status
  local ended='^ *[0-9]+/[0-9]+ Test +#[0-9]+: ([^ ]+) [ .]*\**([A-Za-z: ]+[a-zA-Z]) +([0-9.]+) sec'
  local noise='^(Test project|Total Test time|The following tests|Errors while running|Output from'
  noise+=' these|Use "--rerun|$)'
  local -A costs=() runs=()
  while read -r name cost; do
    costs[$name]=$cost
    all_cost=$((all_cost + cost))
  done <"$1.costs"
  all=${#costs[@]}
  part=""
  while true; do
    status=0
    IFS= read -r -t 60 line || status=$?
    if [ $status != 0 ]; then
      [ $status -gt 128 ] || break
      part+=$line  # nothing has ended for a minute
      echo "  running for $((SECONDS - said)) s: ${!runs[*]}"
      continue
    fi
    line=$part$line part=""
    if [[ $line =~ ^\ +Start\ +[0-9]+:\ (.*) ]]; then
      runs[${BASH_REMATCH[1]}]=1
    elif [[ $line =~ $ended ]]; then
      name=${BASH_REMATCH[1]} result=${BASH_REMATCH[2]} seconds=${BASH_REMATCH[3]}
      unset "runs[$name]"
      n=$((n + 1))
      done_cost=$((done_cost + ${costs[$name]:-1}))
      # At the pace so far; at first, at the one that two quiet cores have.
      left=$(((all_cost - done_cost) * (SECONDS - begin + 30) / (done_cost + 60) / 60))
      printf '%4d of %d  %-40s %-12s %7s s   about %d minutes left\n' \
        $n "$all" "$name" "$result" "$seconds" $left
      said=$SECONDS
    elif [[ $line == *"tests passed, "*" failed out of "* ]]; then
      echo "$line" >"$1.verdict"
    elif [[ $line =~ ^[[:space:]]+[0-9]+\ -\ (.*\)) ]]; then
      [[ $line == *"(Skipped)" ]] || echo "${BASH_REMATCH[1]}" >>"$1.failed"
    elif ! [[ $line =~ $noise ]]; then
      echo "$line"
    fi
  done
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
  ctest "$@" -j "$(nproc)" --output-on-failure --no-label-summary --no-tests=error 2>&1 |
    follow "$name" || true
  cp "$tree/Testing/Temporary/LastTest.log" "$name.log"
  [[ $(<"$name.verdict") =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+)$ ]] ||
    { cat "$name.verdict"; exit 1; }
  failed=$((failed + BASH_REMATCH[1]))
  ran=$((ran + BASH_REMATCH[2]))
}

minutes() { echo "$(((SECONDS + 30) / 60)) minutes"; }

cmake/build.sh release muster-tests
case $what in
  check) run check build/release -L '^quick$' -LE '^thorough$' ;;
  *) run test build/release -LE '^thorough$' ;;
esac

if [ "$what" = all ]; then
  echo "make test: $ran tests, $failed failed, after $(minutes)"
  for preset in release asan tsan tsan-clang aarch64; do
    reason=
    [ $preset = aarch64 ] && reason=$(why_not_aarch64)
    [ $preset = tsan-clang ] && reason=$(why_not_tsan_clang)
    if [ -n "$reason" ]; then
      leave_out $preset "$reason"
      continue
    fi
    cmake/build.sh $preset
    echo "subdirs(\"$top/build/$preset\")" >>"$logs/rest/CTestTestfile.cmake"
    # An empty suite would pass in silence: labels gone wrong are a failure.
    if ctest --test-dir build/$preset -N -L '^thorough$' | grep -q '^Total Tests: 0'; then
      echo "add_test($preset.has-tests false)
        set_tests_properties($preset.has-tests PROPERTIES LABELS thorough)" \
        >>"$logs/rest/CTestTestfile.cmake"
    fi
  done
  run rest "$logs/rest" -L '^thorough$'
fi

awk -f test/skipped.awk "$logs"/*.log
sed 's/^/failed: /' "$logs"/*.failed
echo "$((100 * (ran - failed) / ran))% tests passed, $failed tests failed out of $ran, $(minutes)"
[ $failed = 0 ]
