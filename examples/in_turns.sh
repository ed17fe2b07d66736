#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# in_turns.sh ROUNDS COMMAND...: runs each command once a round, in turns, and prints the median of
# the seconds that it says it took ("in 1.234 s", to standard error), and of the ratio to the first
# command's, by round. What two programs take says little if they ran at different times.
#
#   in_turns.sh 9 "word_count_pthread --verbose DIR" "word_count --verbose DIR"
set -euo pipefail
[ $# -ge 2 ] && [[ $1 =~ ^[1-9][0-9]*$ ]] || { sed -n '3,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
rounds=$1
shift

for ((round = 1; round <= rounds; ++round)); do
  for i in $(seq $#); do
    said=$(bash -c "${!i}" 2>&1 >/dev/null) || { echo "${!i}: $said" >&2; exit 1; }
    seconds=$(sed -nE 's/.* in ([0-9.]+) s .*/\1/p' <<<"$said")
    [ -n "$seconds" ] || { echo "${!i}: does not say what it took" >&2; exit 1; }
    echo "$i $seconds"
  done
done | awk '
  function median(values, count,    i, j, v) {
    for (i = 2; i <= count; ++i) {
      v = values[i]
      for (j = i - 1; j >= 1 && values[j] > v; --j) values[j + 1] = values[j]
      values[j + 1] = v
    }
    return (values[int((count + 1) / 2)] + values[int(count / 2) + 1]) / 2
  }
  $1 == 1 { ++rounds; first = $2 }
  { seconds[$1, rounds] = $2; ratio[$1, rounds] = $2 / first; if ($1 > commands) commands = $1 }
  END {
    for (c = 1; c <= commands; ++c) {
      for (r = 1; r <= rounds; ++r) { a[r] = seconds[c, r]; b[r] = ratio[c, r] }
      printf "%s %.3f s %.2f\n", c, median(a, rounds), median(b, rounds)
    }
  }' | while read -r i seconds _ ratio; do
  printf '%8s s  %5s  %s\n' "$seconds" "$ratio" "${!i}"
done
