#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# For run.sh and hosts.sh to source: how they end, and what the ranks' counters add up to. The job's
# output is in $scratch/out and $scratch/err.

skip() { echo "skipped: $*"; exit 77; }
fail() {
  echo "FAILED: $*" >&2
  head -c 4000 "${scratch:?}/out" "$scratch/err" >&2
  exit 1
}

# sum <counter>
sum() {
  sed -n "s/.*counters:.* $1=\([0-9]*\).*/\1/p" "$scratch/err" |
    awk '{ s += $1 } END { print s + 0 }'
}

# expect_counts <counter=number>...: exactly so many.
expect_counts() {
  local count
  for count in "$@"; do
    [ "$(sum "${count%=*}")" = "${count#*=}" ] ||
      fail "${count%=*} is $(sum "${count%=*}"), not ${count#*=}"
  done
}
