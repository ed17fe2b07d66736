# SPDX-License-Identifier: BSD-3-Clause
# Lists every skip in ctest's log, with its reason: a whole test (exit code 77 and a line
# "skipped: <reason>"), or a case inside a GoogleTest executable.
/^[0-9]+\/[0-9]+ Test(ing)?: / { sub(/^[^:]*: /, ""); test = $0; next }
/^skipped: / { skip(test, substr($0, 10)); next }
/: Skipped$/ { reason = ""; reading = 1; next }
/^\[  SKIPPED \] .* \([0-9]+ ms\)$/ {
  name = $4
  skip(test " " name, reason)
  reading = 0
  next
}
reading { reason = reason (reason == "" ? "" : " ") $0 }

function skip(what, why) { printf "skipped: %s: %s\n", what, why; count++ }

END { printf "%d skipped\n", count }
