#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# No skip goes uncounted: every kind that ctest's log can hold is in the sum of its reason.
set -euo pipefail
diff - <(awk -f "$(dirname "$0")/skipped.awk" <<'LOG'
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
