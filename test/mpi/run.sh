#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh <mpi> <how> <ranks> <time limit, s> <expectation> <binding> <program> [argument...]
# Runs an MPI program as a user would, and holds what it did against an expectation.
#   mpi          openmpi or mpich
#   how          preload, component, or none
#   expectation  ours:   it passes, and no barrier was the MPI's own
#                some:   it passes, and some were ours, some the MPI's own
#                hosts, messages: it passes, and those served
#                theirs: it passes, and none was ours
#                dies:   the job ends with an error within the limit
#                survives: it passes, though the launcher, Open MPI's, sees a rank die
#   binding      none, core, numa, socket, or PUs for each rank, as "0-1,0,1"
# Environment: MUSTER_BUILD, the build; SETTINGS: "name=value ..." for ours (barrier, levels, wait).
set -uo pipefail
mpi=$1 how=$2 ranks=$3 limit=$4 expected=$5 binding=$6
shift 6
build=${MUSTER_BUILD:?}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
skip() { echo "skipped: $*"; exit 77; }
fail() {
  echo "FAILED: $*" >&2
  head -c 4000 "$scratch/out" "$scratch/err" >&2
  exit 1
}

[ -x "$1" ] || skip "package ${mpi/mpich/libmpich-dev} ($(basename "$1") was not built)"
command -v "mpirun.$mpi" >/dev/null || skip "package ${mpi/openmpi/openmpi-bin}"
preload=$(find "$build/mpi" -maxdepth 1 -name 'libmuster_mpi_preload.so' | head -1)
[ -n "$preload" ] || fail "no preload library"

export MUSTER_MPI_COUNTERS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
command=("mpirun.$mpi" -n "$ranks")
bind_to=$binding
[[ $binding == *[0-9]* ]] && bind_to=none
case $mpi in
  openmpi)
    command+=(--oversubscribe --mca btl_base_warn_component_unused 0 --bind-to "$bind_to")
    [ "$expected" = survives ] && command+=(--enable-recovery)
    ;;
  mpich)
    command+=(-bind-to "$bind_to")
    ;;
esac
read -ra settings <<<"${SETTINGS:-}"
[[ ${SETTINGS:-} == *verbose=* ]] || settings+=(verbose=1)
case $how in
  preload)
    for setting in "${settings[@]}"; do
      name=MUSTER_${setting%%=*}
      export "${name^^}=${setting#*=}"
    done
    # To the ranks, also to spawned ones, but not to the launcher: it is no MPI program.
    if [ "$mpi" = openmpi ]; then
      command+=(-x "LD_PRELOAD=$preload")
    else
      command+=(-genv LD_PRELOAD "$preload")
    fi
    ;;
  component)
    [ -e "$build/mpi/mca_coll_muster.so" ] || skip "package libopenmpi-dev"
    mkdir "$scratch/components"
    ln -s "$build/mpi/mca_coll_muster.so" "$scratch/components"
    system=$(ompi_info --path pkglibdir 2>/dev/null | sed -n 's/.*: *//p')
    command+=(--mca mca_base_component_path "$system:$scratch/components")
    for setting in "${settings[@]}"; do
      command+=(--mca "coll_muster_${setting%%=*}" "${setting#*=}")
    done
    ;;
esac
if [[ $binding == *[0-9]* ]]; then
  # Each rank binds itself, by the number that its launcher gave it.
  # shellcheck disable=SC2016
  command+=(bash -c 'IFS="," read -ra sets <<<"$0"
    exec taskset -c "${sets[${OMPI_COMM_WORLD_RANK:-$PMI_RANK}]}" "$@"' "$binding")
fi

files_before=$(find /dev/shm -mindepth 1 -user "$(id -un)" -name '*uster*' | wc -l)
SECONDS=0
timeout --kill-after=5 "$limit" "${command[@]}" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
status=$?
[ "$SECONDS" -lt "$limit" ] || fail "not over after $limit s: $*"
grep -h -m1 '^skipped: ' "$scratch/out" && exit 77

if [ "$expected" = dies ]; then
  [ $status != 0 ] || fail "the job should have ended with an error"
elif [ "$expected" = survives ]; then
  grep -q '^passed' "$scratch/out" || fail "status $status: $*"
else
  [ $status = 0 ] && grep -q '^passed' "$scratch/out" || fail "status $status: $*"
fi
left=$(find /dev/shm -mindepth 1 -user "$(id -un)" -name '*uster*' | wc -l)
[ "$left" -le "$files_before" ] || fail "$left files in /dev/shm"

sum() {
  sed -n "s/.*counters:.* $1=\([0-9]*\).*/\1/p" "$scratch/err" |
    awk '{ s += $1 } END { print s + 0 }'
}
inside=$(sum inside) hosts=$(sum hosts) messages=$(sum messages) theirs=$(sum theirs)
case $expected in
  ours) [ "$inside" -gt 0 ] && [ "$theirs" = 0 ] ;;
  some) [ "$inside" -gt 0 ] && [ "$theirs" -gt 0 ] ;;
  hosts) [ "$hosts" -gt 0 ] ;;
  messages) [ "$messages" -gt 0 ] && [ "$inside$theirs" = 00 ] ;;
  theirs) [ "$inside$hosts$messages" = 000 ] && [ "$theirs" -gt 0 ] ;;
  *) true ;;
esac || fail "served: inside=$inside hosts=$hosts messages=$messages theirs=$theirs, not $expected"
if [ -n "${SAYS:-}" ]; then
  grep -qE "$SAYS" "$scratch/err" || fail "it does not say: $SAYS"
fi
if [[ $expected != dies && $expected != survives ]]; then
  echo "inside=$inside hosts=$hosts messages=$messages theirs=$theirs"
fi
