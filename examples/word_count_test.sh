#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# word_count_test.sh BEFORE AFTER SOURCE: both programs count what tr, sort and uniq count, from
# files, directories and standard input, with every lock, and refuse what they cannot do.
set -euo pipefail
before=$1
after=$2
source=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LC_ALL=C
failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }

counted() { tr -cs A-Za-z '\n' | tr A-Z a-z | sed '/^$/d' | sort | uniq -c | sort -k1,1nr -k2; }
equal() {  # equal WHAT FILE COMMAND...: the command prints what stands in the file
  local what=$1 file=$2
  shift 2
  timeout 60 "$@" >"$scratch/out" 2>"$scratch/err" || fail "$what: status $?: $(cat "$scratch/err")"
  cmp "$scratch/out" "$file" || fail "$what"
}
refused() {  # refused STATUS TEXT COMMAND...: nothing on standard output, TEXT in its error
  local status=$1 text=$2 got=0
  shift 2
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || got=$?
  [ $got = "$status" ] || fail "$*: status $got, not $status"
  grep -qF -- "$text" "$scratch/err" || fail "$*: says: $(cat "$scratch/err")"
  [ ! -s "$scratch/out" ] || fail "$*: prints: $(head -3 "$scratch/out")"
}

echo "-- a tree of real text, 4 threads; every lock"
text=$scratch/text
mkdir "$text"
cp -r "$source/doc" "$source/src" "$source/bench" "$source/include" "$source/README.md" "$text"
ln -s / "$text/not-followed"
mkfifo "$text/not-read"
find "$text" -type f -exec sh -c 'for f; do cat "$f"; echo; done' sh {} + >"$scratch/whole"
counted <"$scratch/whole" >"$scratch/expected"
[ "$(wc -l <"$scratch/expected")" -gt 3000 ] || fail "too little text to count"
equal before "$scratch/expected" "$before" --threads 4 --top 0 "$text"
locks=$({ "$after" --lock none 2>&1 </dev/null || true; } | sed 's/.*there are: //; s/,//g')
[ "$(wc -w <<<"$locks")" -ge 13 ] || fail "locks: $locks"
for lock in $locks; do
  some=$text/doc
  # Each word waits for the server, which has no CPU of its own where others are busy.
  case $lock in rcl*) some=$text/README.md ;; esac
  "$before" --threads 1 --top 0 "$some" >"$scratch/expected.some"
  equal "$lock" "$scratch/expected.some" "$after" --lock "$lock" --threads 4 --top 0 "$some"
done
equal after "$scratch/expected" "$after" --threads 4 --top 0 "$text"
ten_times=()
for _ in 1 2 3 4 5 6 7 8 9 10; do ten_times+=("$text"); done
awk '{ printf "%7d %s\n", 10 * $1, $2 }' "$scratch/expected" >"$scratch/expected.ten"
equal "ten times" "$scratch/expected.ten" "$after" --threads 4 --top 0 "${ten_times[@]}"

echo "-- standard input, and words that do not fit between two reads"
equal "standard input" "$scratch/expected" "$after" --threads 4 --top 0 <"$scratch/whole"
head -3 "$scratch/expected" >"$scratch/three"
equal "the most frequent" "$scratch/three" "$after" --top 3 - <"$scratch/whole"
head -10 "$scratch/expected" >"$scratch/ten"
equal "ten by default" "$scratch/ten" "$before" "$text"
# One word of 700,000 letters, then words whose ends stand everywhere around the end of a block.
{ head -c 700000 /dev/zero | tr '\0' q; seq -f ' w%g' 60000 | tr 0-9 a-j; } >"$scratch/long"
counted <"$scratch/long" >"$scratch/expected.long"
equal "long words" "$scratch/expected.long" "$after" --threads 3 --top 0 "$scratch/long"
: >"$scratch/none"
equal "nothing" "$scratch/none" "$after" "$scratch/none"

echo "-- what it took, and what the lock did"
"$after" --verbose "$text" 2>&1 >"$scratch/out" | tee "$scratch/err"
words=$(awk '{ words += $1 } END { print words }' "$scratch/expected")
grep -qE "^$words words, $(wc -l <"$scratch/expected") different, in [0-9.]+ s by" "$scratch/err" ||
  fail "another number of words than $words"
grep -q "^lock: auto" "$scratch/err" || fail "no word of the lock"
here=$(dirname "$0")
"$here/in_turns.sh" 2 "$before --verbose $scratch/long" "$after --verbose $scratch/long" |
  tee "$scratch/out"
[ "$(grep -cE '^ *[0-9.]+ s +[0-9.]+  ' "$scratch/out")" = 2 ] || fail "in_turns.sh"

echo "-- refusals"
refused 2 'no lock "none"' "$after" --lock none
refused 2 "its lock is a pthread mutex" "$before" --lock mcs
refused 2 "a number from 1 to" "$after" --threads 0
refused 2 "a number from 1 to" "$after" --threads 4x
refused 2 "a number from 0 to" "$after" --top -1
refused 2 "usage:" "$after" --threads
refused 2 "usage:" "$after" --what
refused 1 "No such file" "$after" "$scratch/missing"
"$after" --top 0 "$scratch/missing" "$scratch/long" >"$scratch/out" 2>/dev/null && fail "status 0"
cmp "$scratch/out" "$scratch/expected.long" || fail "what is there is counted all the same"
"$after" --help | grep -q -- "--lock NAME" || fail "--help"
if [ -e /dev/full ]; then
  "$after" "$scratch/long" >/dev/full 2>"$scratch/err" && fail "a full disk: status 0"
  grep -q "could not be written" "$scratch/err" || fail "a full disk: $(cat "$scratch/err")"
fi
exit $((failures > 0))
