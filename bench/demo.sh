#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh: what the library sees of this machine and of the paper's, and every barrier on this one,
# in threads and in processes, beside what people use today. Two minutes, in a built tree.
# Files go to build/demo. MUSTER_DEMO_SECONDS: for the measurement (60).
set -euo pipefail
cd "$(dirname "$0")/.."
muster=${MUSTER:-build/release/muster}
out=build/demo
seconds=${MUSTER_DEMO_SECONDS:-60}
kunpeng=test/machines/kunpeng920-2s.txt

[ -x "$muster" ] || { echo "No $muster: make build first." >&2; exit 1; }
mkdir -p "$out"

bold() {
  if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n\n' "$*"; else printf '\n%s\n\n' "$*"; fi
}

bold "1. This machine: what cores share, and the groups that ranks form"
"$muster" topo --svg "$out/this-machine.svg"

bold "2. The paper's machine, two Kunpeng 920: 14 ranks mapped by NUMA node"
"$muster" topo --topology "$kunpeng" --ranks 14 --map-by numa --svg "$out/kunpeng-14-by-numa.svg"
bold "   ... and a rank per core, 128, mapped by core"
"$muster" topo --topology "$kunpeng" --map-by core --svg "$out/kunpeng-128-by-core.svg" |
  sed -n '/^groups/,$p'

bold "3. Every barrier on this machine, threads and processes, 2, 4 and 8 participants"
echo "Everyone takes turns for equal times; $seconds seconds in all."
echo
"$muster" bench barrier --mode threads,processes --participants 2,4,8 --map-by core \
  --seconds "$seconds" --output "$out" | tee "$out/barrier.txt.part"
mv "$out/barrier.txt.part" "$out/barrier.txt"

bold "4. One MPI program, unmodified, without and with Muster: us a barrier"
bench/demo_mpi.sh "$(dirname "$muster")" | tee "$out/mpi.txt.part"
mv "$out/mpi.txt.part" "$out/mpi.txt"

bold "Where things are"
describe() { [ -f "$out/$1" ] && printf '  %-36s %s\n' "$out/$1" "$2"; return 0; }
describe barrier.png "the plot: latency against participants"
describe barrier.svg "the same, as a drawing"
describe barrier.txt "the tables above"
describe mpi.txt "MPI_Barrier without and with Muster"
describe barrier.json "all results, with machine, commit and settings"
describe barrier.csv "the same rows for a spreadsheet"
describe this-machine.svg "the groups on this machine"
describe kunpeng-14-by-numa.svg "14 ranks on the paper's machine"
describe kunpeng-128-by-core.svg "128 ranks on it"
echo
echo "More: $muster --help, $muster bench barrier --help; make help; doc/."
