#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# report_many.sh <mpi> <how> <program>: MUSTER_REPORT tells of communicators of the same ranks one
# by one, with the right rank as the late one; and of very many it tells those that took most, and
# adds up the others. Once in twenty times: others may take the CPU from who should be on time.
set -uo pipefail
mpi=$1 how=$2 program=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export MUSTER_REPORT=$scratch/report.json
run() {
  rm -f "$MUSTER_REPORT"
  "$(dirname "$0")/run.sh" "$mpi" "$how" 3 60 any none "$program" "$@" || exit
}

several() {
  run several 50
  python3 - "$MUSTER_REPORT" <<'END'
import json, sys
told = {c["called"]: c for line in open(sys.argv[1]) for c in json.loads(line)["communicators"]}
late = {"MPI_COMM_WORLD, communicator 1 of ranks 0-2": (0, 1, 3),
        "communicator 2 of ranks 0-2 (unnamed)": (1, 2, 3),
        "Hälo, communicator 3 of ranks 0-2": (2, 4, 3),
        "communicator 4 of ranks 0,2 (unnamed)": (1, 1, 2)}
assert set(told) == set(late), set(told) ^ set(late)
for called, (rank, late_ms, ranks) in late.items():
    c = told[called]
    assert c["ranks"] == ranks and c["communicators"] == 1, c
    assert 50 <= c["barriers"] <= 51, c  # MPI_Finalize may have one of its own
    assert c["by_rank"][rank]["came_last"] >= 45, c
    assert c["by_rank"][rank]["waited_for_it_s"] >= 45e-3 * late_ms * (ranks - 1), c
END
}

many() {
  run many 300
  python3 - "$MUSTER_REPORT" <<'END'
import json, sys
told = [c for c in json.loads(open(sys.argv[1]).readline())["communicators"]
        if c["name"] != "MPI_COMM_WORLD"]
most = max((c for c in told if c["communicators"] == 1), key=lambda c: c["spent_s"])
assert most["called"] == "communicator 10 of ranks 0-2 (unnamed)", most
assert most["by_rank"][0]["waited_for_it_s"] >= 0.19, most
assert sum(c["communicators"] for c in told) == 300, told
assert sum(c["barriers"] for c in told) == 600, told
counted = sum(rank["came_last"] for c in told for rank in c["by_rank"])
assert 0.95 * 600 <= counted <= 600, counted
assert len(told) == 65, len(told)
added, = (c for c in told if c["communicators"] > 1)
assert added["called"] == f"{added['communicators']} other communicators of ranks 0-2", added
assert added["by_rank"][0]["came_last"] >= 0.45 * added["barriers"], added
END
}

# What is wrong always fails each time.
for part in several many; do
  passed=no
  for _ in {1..20}; do
    ! "$part" || { passed=yes; break; }
  done
  [ $passed = yes ] || { cat "$MUSTER_REPORT" >&2; exit 1; }
done
