#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench.sh <muster>: `muster bench mpi` in its three forms, with the least of everything.
set -uo pipefail
muster=$1
fail() { echo "FAILED: $*" >&2; exit 1; }
command -v mpirun.openmpi >/dev/null || command -v mpirun.mpich >/dev/null ||
  { echo "skipped: package openmpi-bin"; exit 77; }
bench() {
  timeout 100 "$muster" bench mpi --ranks 2 --rounds 2 --seconds 0.01 --defaults --peers none "$@"
}
text=$(bench) || fail "bench mpi"
grep -q 'best peer' <<<"$text" || fail "no peer: $text"
grep -qE 'muster \(preload\) +[0-9.]+ ' <<<"$text" || fail "none of ours: $text"
osu=$(bench --osu --only "muster (preload)") || fail "--osu"
grep -qF '# Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations' <<<"$osu" ||
  fail "not osu_barrier's format: $osu"
json=$(bench --json --only "default") || fail "--json"
grep -q '"latency_us": \[' <<<"$json" || fail "no latencies: $json"
if bench --only nonsense 2>/dev/null; then fail "nonsense was found"; fi
exit 0
