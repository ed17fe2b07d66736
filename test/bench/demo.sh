#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh <demo.sh> <muster-demo> [command that it lacks]: the demonstration over a `muster` that a
# script plays. What fails is said, the rest goes on, and the exit code tells. What is not here is
# left out, and no failure.
set -uo pipefail
fail() { echo "FAILED: $*" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bench" "$scratch/bin" # where it is, its tree is one up
cp "$1" "$scratch/bench/demo.sh"

cat >"$scratch/muster" <<'END'
#!/bin/bash
if [ "$2" = --help ]; then [[ " $LACKS " != *" $1 "* ]]; exit; fi
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
for tool in bash cat dirname mkdir printf rm sed; do
  ln -s "$(type -P $tool)" "$scratch/bin/$tool"
done
cp "$scratch/muster" "$scratch/bin/mpirun.mpich"
# play <what fails> [what is not here]: its text, with both streams; its exit code
play() {
  : >"$scratch/calls"
  FAILS=$1 LACKS=${2:-} CALLS=$scratch/calls MUSTER=$scratch/muster MUSTER_DEMO_SECONDS=10 \
    PATH=$scratch/bin "$scratch/bench/demo.sh" 2>&1
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
# The program that `make demo` builds has all that is called: its help is of that command.
for call in $(sed 's/^\(bench\|sim\) /\1,/; s/ .*//' "$scratch/calls" | sort -u); do
  [ "${call%,*}" != "${3:-}" ] || continue
  # A long path breaks the line.
  help=$("$2" ${call/,/ } --help | tr -s '\n ' ' ')
  [[ $help = *"Usage: "*"${2##*/} ${call/,/ } ["* ]] || fail "$2 has no $call"
done

# What is measured may fail: the summary tells of the rest.
for step in "barrier=bench barrier" "lock=bench lock" "mpi=bench mpi" "sim=sim barrier" \
  "sim-lock=sim lock" "report=report"; do
  text=$(play "${step#*=}") && fail "it succeeds without $step"
  grep -qF "${step#*=} is broken" <<<"$text" || fail "why is not told: $text"
  grep -qF "${step%%=*}: failed (above); the demonstration goes on without it." <<<"$text" ||
    fail "that $step failed is not told: $text"
  [[ $text = *$'\nOne.\nTwo.\nThree.\n'* ]] || fail "no summary without $step: $text"
done
# What nobody has installed: no failure.
text=$(play "" sim) || fail "no model is a failure: $text"
grep -q '^left out: .*(package libboost-context-dev)$' <<<"$text" || fail "no word of it: $text"
! grep -q '^sim' "$scratch/calls" || fail "it calls: $(cat "$scratch/calls")"
rm "$scratch/bin/mpirun.mpich"
text=$(play "") || fail "no MPI is a failure: $text"
grep -q '^left out: no MPI is here (package openmpi-bin or mpich)$' <<<"$text" ||
  fail "no word of it: $text"
! grep -q '^bench mpi' "$scratch/calls" || fail "it calls: $(cat "$scratch/calls")"
# Without these there is nothing to tell.
for step in "topo" "bench summary"; do
  text=$(play "$step") && fail "it succeeds without $step"
  [[ $text != *One.* ]] || fail "a summary without $step: $text"
done
text=$(MUSTER=$scratch/none "$scratch/bench/demo.sh" 2>&1) && fail "it needs no muster"
[ "$text" = "No $scratch/none: say make demo, which builds it." ] ||
  fail "without a muster it says: $text"
