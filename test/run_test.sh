#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run_test.sh [build]: what run.sh tells: each test when it ends, not later; what failed; and every
# kind of skip that ctest's log can hold, in the sum of its reason. And what it runs of that build.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
fail() { echo "$*" >&2; exit 1; }

printf 'lock 30\nmpi.openmpi 1\n' >all.costs
mkfifo from to
"$here/follow.sh" all <from >to &
exec 3>from 4<to
echo '      Start  1: lock' >&3
echo ' 1/2 Test  #1: lock .............................   Passed   30.01 sec' >&3
IFS= read -r line <&4  # while ctest goes on
[[ $line == '   1 of 2  lock '*' Passed '*' 30.01 s   about 0 minutes left' ]] || fail "$line"
cat >&3 <<'END'
 2/2 Test  #2: mpi.openmpi ......................***Failed    0.12 sec
said something

50% tests passed, 1 tests failed out of 2

Total Test time (real) =   0.13 sec

The following tests FAILED:
      2 - mpi.openmpi (Failed)
Errors while running CTest
END
exec 3>&-
diff <(sed 's/  */ /g' <&4) - <<'END'
 2 of 2 mpi.openmpi Failed 0.12 s about 0 minutes left
said something
END
grep -qx 'mpi.openmpi (Failed)' all.failed || fail "it does not say what failed"
grep -q '1 tests failed out of 2' all.verdict || fail "no verdict"

diff - <(awk -f "$here/skipped.awk" <<'LOG'
1/3 Testing: barrier
1/3 Test: barrier
[ RUN      ] A.Runs
[       OK ] A.Runs (0 ms)
[ RUN      ] A.Skips
barrier_test.cpp:3: Skipped
no corpus:
MUSTER_CORPUS is not set
[  SKIPPED ] A.Skips (0 ms)
[ RUN      ] B.Skips
barrier_test.cpp:9: Skipped
one CPU only
[  SKIPPED ] B.Skips (2 ms)
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] A.Skips
[  SKIPPED ] B.Skips
[ RUN      ] C.Skips
barrier_test.cpp:19: Skipped
one CPU only
[  SKIPPED ] C.Skips (0 ms)
2/3 Testing: format
2/3 Test: format
skipped: package clang-format
3/3 Testing: tidy
3/3 Test: tidy
12 sources
LOG
) <<'LIST'
    1 skipped: no corpus: MUSTER_CORPUS is not set (barrier A.Skips)
    2 skipped: one CPU only (barrier B.Skips, ...)
    1 skipped: package clang-format (format)
4 skipped
LIST

[ $# -gt 0 ] || exit 0
# selected check|test: the names of the tests that run.sh has ctest run for it.
selected() {
  local -a arguments
  read -ra arguments <<<"$(sed -n "s/^  $1) run $1 build.release \(.*\) ;;$/\1/p" "$here/run.sh" |
    tr -d "'")"
  [ ${#arguments[@]} != 0 ] || fail "run.sh has no $1"
  ctest -N "${arguments[@]}" | sed -n 's/^ *Test *#[0-9]*: //p'
}
# Not in the build itself: the log of the ctest that runs this would be written over.
echo "subdirs(\"$1\")" >CTestTestfile.cmake
for what in check test; do
  selected $what >names
  [ -s names ] || fail "$what: no tests"
  ! grep -xE 'style|format|tidy' names || fail "make $what checks how the sources look"
done
ctest -N >names
grep -q ': format$' names || fail "no test is called format"
selected check >names
! grep '^mpi\.' names || fail "make check starts MPI jobs"
