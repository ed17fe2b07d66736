# SPDX-License-Identifier: BSD-3-Clause
# Sums up the skips in ctest's logs by their reason: of whole tests (exit code 77 and a line
# "skipped: <reason>") and of cases inside a GoogleTest executable. Names one of each.
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

function skip(what, why) {
  if (!(why in skips)) { order[++reasons] = why; first[why] = what }
  skips[why]++
  count++
}

END {
  for (i = 1; i <= reasons; i++) {
    why = order[i]
    others = (skips[why] > 1 ? ", ..." : "")
    printf "%5d skipped: %s (%s%s)\n", skips[why], why, first[why], others
  }
  printf "%d skipped\n", count
}
