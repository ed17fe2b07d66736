#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh: what the library sees of this machine and of the paper's, its barriers and locks on this
# one beside what people use today, and what the model predicts for a big server. Runs in a built
# tree, ends with what was found in three sentences, and leaves its files in build/demo.
# MUSTER_DEMO_SECONDS: for the barriers (10); the locks have half of it.
set -euo pipefail
cd "$(dirname "$0")/.."
muster=${MUSTER:-build/release/muster-demo}
out=build/demo
seconds=${MUSTER_DEMO_SECONDS:-10}
kunpeng=test/machines/kunpeng920-2s.txt
status=0

[ -x "$muster" ] || { echo "No $muster: say make demo, which builds it." >&2; exit 1; }
rm -rf "$out"
mkdir -p "$out"

# What the steps that are still to come take, seconds: barriers, locks, MPI, predictions.
left=$((seconds + 4 + seconds / 2 + 8 + 20 + 3))
step() {  # step <title> [seconds it takes]
  local text="$1${2:+ ($2 s of $left)}"
  if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n\n' "$text"; else printf '\n%s\n\n' "$text"; fi
  left=$((left - ${2:-0}))
}
failed() {
  status=1
  cat "$out/$1.txt"
  echo "$1: failed (above); the demonstration goes on without it." >&2
}

step "1. This machine: what cores share, and the groups that ranks form"
"$muster" topo --svg "$out/this-machine.svg"
step "2. The paper's machine, two Kunpeng 920: 14 ranks mapped by NUMA node"
"$muster" topo --topology "$kunpeng" --ranks 14 --map-by numa --svg "$out/kunpeng-14-by-numa.svg" |
  sed -n '/^groups/,$p'
"$muster" topo --topology "$kunpeng" --map-by core --svg "$out/kunpeng-128-by-core.svg" \
  >/dev/null

step "3. Every barrier here in turn, 2, 4 and 8 threads and processes" $((seconds + 4))
"$muster" bench barrier --mode threads,processes --participants 2,4,8 --map-by core \
  --seconds "$seconds" --output "$out" >"$out/barrier.txt" || failed barrier
step "4. Locks: increments in a critical section, 1, 2 and 8 threads" $((seconds / 2 + 8))
"$muster" bench lock --locks auto,peers --threads 1,2,8 --seconds $((seconds / 2)) \
  --output "$out" >"$out/lock.txt" || failed lock
step "5. One MPI program, unmodified, without Muster and with it" 20
if ! command -v mpirun.openmpi mpirun.mpich mpiexec.hydra >/dev/null && [ ! -d build/peers ]; then
  echo "left out: no MPI is here (package openmpi-bin or mpich)"
else
  "$muster" bench mpi --defaults --ranks 2,4 --rounds 3 --seconds 0.1 --output "$out" \
    >"$out/mpi.txt" || failed mpi
fi
step "6. By the model: 128 ranks, 63 threads of a server that is not here" 3
if ! "$muster" sim --help >/dev/null 2>&1; then
  echo "left out: it was built without the model (package libboost-context-dev)"
else
  "$muster" sim barrier --machine kunpeng920-2s --algorithms all,auto --output "$out" \
    >"$out/sim.txt" || failed sim
  "$muster" sim lock --machine kunpeng920-2s --locks all --pattern sequential --threads 63 \
    --affinity hierarchical --window 3000 --warm-up 1000 --output "$out" >"$out/sim-lock.txt" ||
    failed sim-lock
fi

step "What was found"
"$muster" bench summary "$out"
"$muster" report "$out" >"$out/report.txt" 2>&1 || failed report

describe() { [ ! -e "$out/$1" ] || printf '  %-34s %s\n' "$out/$1" "$2"; }
echo
describe report.html "all of it on one page, to show to others"
describe barrier.png "barriers: latency against participants"
describe lock.png "locks: throughput and latency"
describe sim.png "the prediction for 128 cores"
describe kunpeng-14-by-numa.svg "14 ranks on the paper's machine (.svg: 3)"
describe barrier.txt "all tables are in the .txt files"
describe barrier.json "all results, with machine and settings"
exit $status
