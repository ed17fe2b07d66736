#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# programs.sh <program>...: each of the benchmark programs, with the least that it can be asked for,
# prints every row that it should, with figures; and refuses what makes no sense. What comes behind
# a comma goes to it first.
set -uo pipefail
fail() { echo "FAILED: $*" >&2; exit 1; }

# rows <how many> <extended regular expression> <<<text
rows() {
  local text count
  text=$(cat)
  count=$(grep -cE "$2" <<<"$text")
  [ "$count" = "$1" ] || fail "$name: $count rows, not $1, are like $2: $text"
}
number='[0-9]+(\.[0-9]+)?'

for command in "$@"; do
  IFS=, read -ra words <<<"$command"
  name=$(basename "${words[0]}")
  run() { timeout 900 "${words[@]}" "$@"; }
  case $name in
    muster-bench-placement)
      text=$(run 3) || fail "$name 3: $text"
      rows 5 "^[a-z0-9].* +$number +$number\$" <<<"$text"
      mistakes=(none -1)
      ;;
    muster-bench-sim)
      text=$(run 0.001) || fail "$name 0.001: $text"
      rows 18 "^[a-z-]+(-NUMA|-SOCKET)* +(128|1024)( +$number){4} +($number|-)\$" <<<"$text"
      rows 1 "^all: $number M events/s" <<<"$text"
      rows 2 "^table of 21 algorithms x 3 mappings.*: $number s" <<<"$text"
      mistakes=(none 0)
      ;;
    muster-bench-allocation)
      text=$(run --rounds 1 --threads 1,2) || fail "$name: $text"
      rows 6 "^.* +[12]  jemalloc +$number\$" <<<"$text"
      rows 18 "^.* +[12]  muster, .* +$number  $number \[$number, $number\]\$" <<<"$text"
      mistakes=(--threads=0 --nonsense)
      ;;
    muster-bench-run)
      text=$(run 1 1) || fail "$name: $text"
      rows 49 "^[a-z]+( [0-9]+)? +[a-z-]+( none)? +$number +$number   $number to $number\$" \
        <<<"$text"
      mistakes=(none)
      ;;
    *) fail "what is $name?" ;;
  esac
  for mistake in "${mistakes[@]}"; do
    run "$mistake" >/dev/null 2>&1 && fail "$name takes $mistake"
  done
  timeout 300 "${words[0]}" --help | grep -q "$name\|Usage" || fail "$name --help"
done
