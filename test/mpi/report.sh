#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# report.sh <mpi> <how> <program>: what MUSTER_REPORT tells of ranks that are late agrees with what
# they saw themselves: each rank's waiting within 5 % or a microsecond a barrier, and who came last.
# Once in twenty times: whoever loses its CPU between its clock and the barrier saw it otherwise.
set -uo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export MUSTER_REPORT=$scratch/report.json MUSTER_TEST_WAITED=$scratch/waited
barriers=400
agrees() {
  rm -f "$MUSTER_REPORT"
  "$(dirname "$0")/run.sh" "$1" "$2" 3 60 ours none "$3" turns $barriers || exit
  python3 - "$MUSTER_REPORT" "$MUSTER_TEST_WAITED" $barriers <<'END'
import json, sys
told = json.loads(open(sys.argv[1]).readline())
world = next(c for c in told["communicators"] if c["name"] == "MPI_COMM_WORLD")
seen = [list(map(float, line.split())) for line in open(sys.argv[2])]
barriers = int(sys.argv[3])
assert told["schema"] == 1 and world["served_by"] == "Muster", told
assert len(seen) == world["ranks"] == len(world["by_rank"]) == 3, world
assert world["barriers"] >= barriers, world
sum_seen = sum(waited for waited, _ in seen) / 1e9
for (waited_ns, last), rank in zip(seen, world["by_rank"]):
    waited = waited_ns / 1e9
    off = abs(rank["waited_s"] - waited)
    assert off <= max(0.05 * waited, 1e-6 * barriers), (waited, rank)
    assert abs(rank["came_last"] - last) <= 0.05 * barriers, (last, rank)
assert abs(sum(r["waited_for_it_s"] for r in world["by_rank"]) - sum_seen) <= 0.05 * sum_seen
print("waited, as they saw it:", ", ".join(f"{w / 1e6:.1f} ms" for w, _ in seen))
END
}
for _ in {1..20}; do
  ! agrees "$@" || exit 0
done
exit 1
