#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# install.sh <source> <build> <program>: after the one line of installation, an unmodified program
# under mpirun without any option has our barrier, and ompi_info describes the parameters.
set -uo pipefail
source=$1 build=$2 program=$3
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
[ -x "$program" ] && [ -e "$build/mpi/mca_coll_muster.so" ] || skip "package libopenmpi-dev"
command -v mpirun.openmpi >/dev/null || skip "package openmpi-bin"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
bash "$source/cmake/install-openmpi.sh" "$build" || fail "the installation"
objdump -p "$HOME/.openmpi/components/mca_coll_muster.so" | grep -q "$build" &&
  fail "the component names the build's folder"
described=$(ompi_info --param coll muster --level 9 2>/dev/null)
for name in priority barrier levels wait verbose; do
  grep -q "coll_muster_$name" <<<"$described" || fail "ompi_info does not know coll_muster_$name"
done
run() {
  MUSTER_MPI_COUNTERS=1 timeout 60 mpirun.openmpi -n 2 --oversubscribe "$@" "$program" \
    semantics 100 2>&1 </dev/null
}
run | grep -qE 'counters: inside=[1-9][0-9]* .* theirs=0 ' || fail "not ours without an option"
run --mca coll ^muster | grep -q 'counters:' && fail "ours, though it was taken out"
bash "$source/cmake/install-openmpi.sh" "$build" "$scratch/prefix" || fail "with a prefix"
[ -e "$scratch/prefix/lib/openmpi/mca_coll_muster.so" ] || fail "nothing below the prefix"
exit 0
