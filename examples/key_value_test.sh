#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# key_value_test.sh PROGRAM: with one client every lock has the counts of std::mutex, with several
# the program's own checks hold, and it refuses what it cannot do.
set -euo pipefail
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }

size=(--operations 20000 --keys 2000 --capacity 300)
"$program" "${size[@]}" --lock std::mutex --threads 1 2>"$scratch/err" | tee "$scratch/expected"
grep -qE '^hits [1-9][0-9]*, misses [1-9][0-9]*, increments 313, entries 300$' \
  "$scratch/expected" || fail "other counts"
grep -qE '^20000 operations, in [0-9.]+ s by 1 threads: ' "$scratch/err" || fail "no time"

locks=$({ "$program" --lock none 2>&1 || true; } | sed 's/.*there are: //; s/,//g')
[ "$(wc -w <<<"$locks")" -ge 13 ] || fail "locks: $locks"
for lock in $locks; do
  # Each operation waits for the server, which has no CPU of its own where others are busy.
  case $lock in rcl*) continue ;; esac
  timeout 60 "$program" "${size[@]}" --lock "$lock" --threads 1 >"$scratch/out" 2>"$scratch/err" ||
    fail "$lock: status $?: $(cat "$scratch/err")"
  cmp "$scratch/out" "$scratch/expected" || fail "$lock, 1 client"
  grep -q "^lock: $lock" "$scratch/err" || fail "$lock: no word of it"
done
for lock in std::mutex auto cc-synch; do
  timeout 60 "$program" --operations 1500000 --lock "$lock" --threads 4 >"$scratch/out" 2>&1 ||
    fail "$lock, 4 clients: status $?: $(cat "$scratch/out")"
done
timeout 60 "$program" --operations 200 --lock rcl --threads 2 >"$scratch/out" 2>&1 ||
  fail "rcl: status $?: $(cat "$scratch/out")"

refused() {  # refused TEXT OPTION...
  local text=$1 got=0
  shift
  "$program" "$@" >"$scratch/out" 2>&1 || got=$?
  [ $got = 2 ] || fail "$*: status $got, not 2"
  grep -qF -- "$text" "$scratch/out" || fail "$*: says: $(cat "$scratch/out")"
}
refused 'no lock "none"' --lock none
refused "a number from 1 to" --threads 0
refused "a number from 0 to" --skew x
refused "a whole number" --keys 1.5
refused "usage:" --what
refused "usage:" argument
"$program" --help | grep -q -- "--lock NAME" || fail "--help"
exit $((failures > 0))
