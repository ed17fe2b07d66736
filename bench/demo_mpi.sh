#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# demo_mpi.sh <build>: one MPI program, unmodified, with and without Muster, under Debian's Open MPI
# and MPICH; latencies in us. An MPI that is missing is said.
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1
preload=$build/mpi/libmuster_mpi_preload.so
[ -e "$preload" ] || { echo "No $preload: make build first." >&2; exit 1; }
preload=$(realpath "$preload")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Prints the latency of `ranks` under `mpi`, with the options that follow.
measure() {
  local mpi=$1 ranks=$2 command text
  shift 2
  command=("mpirun.$mpi" -n "$ranks")
  [ "$mpi" = openmpi ] && command+=(--oversubscribe)
  if [ "$ranks" -le "$(nproc)" ]; then
    [ "$mpi" = openmpi ] && command+=(--bind-to core) || command+=(-bind-to core)
  else
    [ "$mpi" = openmpi ] && command+=(--bind-to none)
  fi
  text=$(timeout 60 "${command[@]}" "$@" "$scratch/barrier.$mpi" 2>"$scratch/err" </dev/null)
  sed -n 's/^\([0-9.]*\) us a barrier$/\1/p' <<<"$text" | grep . || echo failed
}

printf '%-10s %6s %12s %12s   %s\n' MPI ranks without with ratio
status=0
for mpi in openmpi mpich; do
  if ! command -v "mpicc.$mpi" >/dev/null || ! command -v "mpirun.$mpi" >/dev/null; then
    echo "$mpi: not here (package lib$mpi-dev)"
    continue
  fi
  "mpicc.$mpi" -O2 examples/mpi_barrier.c -o "$scratch/barrier.$mpi" || exit 1
  with=(-genv LD_PRELOAD "$preload")
  [ $mpi = openmpi ] && with=(-x "LD_PRELOAD=$preload")
  for ranks in 2 4 8; do
    without=$(measure $mpi $ranks)
    ours=$(measure $mpi $ranks "${with[@]}")
    awk -v mpi=$mpi -v ranks=$ranks -v a="$without" -v b="$ours" 'BEGIN {
      printf "%-10s %6d %12s %12s   ", mpi, ranks, a, b
      if (a + 0 > 0 && b + 0 > 0) printf "%.2f", b / a
      print "" }'
    if [[ $without$ours == *failed* ]]; then
      head -3 "$scratch/err" >&2
      status=1
    fi
  done
done
exit $status
