#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh <demo.sh>: the demonstration over a `muster` that a script plays. What fails is said, the
# rest goes on, and the exit code tells.
set -uo pipefail
fail() { echo "FAILED: $*" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bench" # where it is, its tree is one up
cp "$1" "$scratch/bench/demo.sh"

cat >"$scratch/muster" <<'END'
#!/bin/bash
[[ -z $FAILS || "$* " != "$FAILS "* ]] || { echo "$FAILS is broken"; exit 3; }
echo "$*" >>"$CALLS"
output=
for word in "$@"; do
  [ "$output" != --svg ] || echo picture >"$word"
  [ "$output" != --output ] || [ "$1 $2" != "bench barrier" ] || echo {} >"$word/barrier.json"
  output=$word
done
[ "$1" != topo ] || printf 'tree\ngroups of %s\n' "$3"
[ "$1 $2" != "bench summary" ] || printf 'One.\nTwo.\nThree.\n'
END
chmod +x "$scratch/muster"
# play <what fails>: its text, with both streams; its exit code
play() {
  : >"$scratch/calls"
  FAILS=$1 CALLS=$scratch/calls MUSTER=$scratch/muster MUSTER_DEMO_SECONDS=10 \
    "$scratch/bench/demo.sh" 2>&1
}

text=$(play "") || fail "it ends with $?: $text"
ends="
What was found

One.
Two.
Three.

  build/demo/kunpeng-14-by-numa.svg  14 ranks on the paper's machine (.svg: 3)
  build/demo/barrier.txt             all tables are in the .txt files
  build/demo/barrier.json            all results, with machine and settings"
[ "${text%"$ends"}" != "$text" ] || fail "it ends otherwise: $text"
for n in 1 2 3 4 5 6; do
  grep -q "^$n\. " <<<"$text" || fail "no step $n: $text"
done
grep -q '(14 s of 50)$' <<<"$text" || fail "not the time that is left: $text"
grep -q '^.\{81\}' <<<"$text" && fail "wider than 80: $text"
[ "$(grep -c . "$scratch/calls")" = 10 ] || fail "it calls: $(cat "$scratch/calls")"
grep -q '^bench barrier .*--seconds 10 ' "$scratch/calls" || fail "$(cat "$scratch/calls")"

# What is measured may fail: the summary tells of the rest.
for step in "barrier=bench barrier" "lock=bench lock" "mpi=bench mpi" "sim=sim barrier" \
  "sim-lock=sim lock" "report=report"; do
  text=$(play "${step#*=}") && fail "it succeeds without $step"
  grep -qF "${step#*=} is broken" <<<"$text" || fail "why is not told: $text"
  grep -qF "${step%%=*}: failed (above); the demonstration goes on without it." <<<"$text" ||
    fail "that $step failed is not told: $text"
  [[ $text = *$'\nOne.\nTwo.\nThree.\n'* ]] || fail "no summary without $step: $text"
done
# Without these there is nothing to tell.
for step in "topo" "bench summary"; do
  text=$(play "$step") && fail "it succeeds without $step"
  [[ $text != *One.* ]] || fail "a summary without $step: $text"
done
text=$(MUSTER=$scratch/none "$scratch/bench/demo.sh" 2>&1) && fail "it needs no muster"
[ "$text" = "No $scratch/none: say make demo, which builds it." ] ||
  fail "without a muster it says: $text"
