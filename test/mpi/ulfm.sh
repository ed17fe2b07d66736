#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ulfm.sh <source> <build> <C compiler>: fault tolerance of a real Open MPI 5, from `make peers`:
# with the preload all are told what they would be told without.
set -uo pipefail
source=$1 build=$2 compiler=$3
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
mpi=$source/build/peers/openmpi
[ -e "$mpi/.complete" ] || skip "make peers (an Open MPI 5 with fault tolerance)"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$compiler" -Wall -Wextra "$source/test/mpi/ulfm.c" -isystem "$mpi/include" -L"$mpi/lib" -lmpi \
  -Wl,-rpath,"$mpi/lib" -o "$scratch/ulfm" || fail "compiling"
export OPAL_PREFIX=$mpi OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
declare -A living=([revoked]=3 [killed]=2)
for preload in "" "$build/mpi/libmuster_mpi_preload.so"; do
  for case in revoked killed; do
    out=$(timeout 600 "$mpi/bin/mpirun" --with-ft ulfm --oversubscribe -n 3 \
      ${preload:+-x "LD_PRELOAD=$preload"} "$scratch/ulfm" "$case" 2>&1 </dev/null |
      tr -d '\0')
    [ "$(grep -c '^told: ' <<<"$out")" = "${living[$case]}" ] ||
      fail "$case, ${preload:-alone}: $out"
    [ -z "$preload" ] || grep -q "MPI's own barrier serves: fault tolerance is on" <<<"$out" ||
      fail "it does not say that it takes no part: $out"
  done
done
exit 0
