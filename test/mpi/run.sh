#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh <mpi> <how> <ranks> <limit on a quiet machine, s> <expectation> <binding> <program>
#   [argument...]
# Runs an MPI program as a user would, and holds what it did against an expectation.
#   mpi          openmpi or mpich
#   how          preload, component, or none
#   expectation  ours:   it passes, and no barrier was the MPI's own
#                some:   it passes, and some were ours, some the MPI's own
#                hosts, messages: it passes, and those served
#                theirs: it passes, and none was ours
#                absent: it passes, and ours was asked for none
#                dies:   the job ends with an error within the limit
#                any:    it passes
#                survives: it passes, though the launcher, Open MPI's, sees a rank die
#   binding      none, core, numa, socket, or PUs for each rank, as "0-1,0,1"
# Nothing of the job is left afterwards: no process, and in /dev/shm nothing but what the MPI itself
# may leave.
# Environment: MUSTER_BUILD, the build; SETTINGS: "name=value ..." for ours (barrier, levels, wait,
# verbose, priority); SAYS, SAYS_NOT: what is to be, and not to be, on standard error; COUNTS:
# "counter=number ...", over all ranks; MUSTER_MPI_COUNTERS: what that is to be, if not 1;
# COMPONENT: another than the build's.
set -uo pipefail
mpi=$1 how=$2 ranks=$3 limit=$(($4 * 10)) expected=$5 binding=$6  # a busy machine is no hang
shift 6
build=${MUSTER_BUILD:?}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=test/mpi/job.sh
source "$(dirname "$0")/job.sh"

[ -x "$1" ] || skip "package ${mpi/mpich/libmpich-dev} ($(basename "$1") was not built)"
command -v "mpirun.$mpi" >/dev/null || skip "package ${mpi/openmpi/openmpi-bin}"
preload=$(find "$build/mpi" -maxdepth 1 -name 'libmuster_mpi_preload.so' | head -1)
[ -n "$preload" ] || fail "no preload library"

export MUSTER_MPI_COUNTERS=${MUSTER_MPI_COUNTERS:-1}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
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
    component=${COMPONENT:-$build/mpi/mca_coll_muster.so}
    [ -e "$component" ] || skip "package libopenmpi-dev"
    mkdir "$scratch/components"
    ln -s "$component" "$scratch/components"
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

# A /dev/shm of the job's own, where that is allowed: then all that is left there is the job's.
private=()
if unshare --mount mount -t tmpfs none /dev/shm 2>/dev/null; then
  # shellcheck disable=SC2016
  private=(unshare --mount bash -c 'mount -t tmpfs none /dev/shm && "$@"
    status=$?
    find /dev/shm -mindepth 1 >"$0"
    exit $status' "$scratch/left")
fi
touch "$scratch/start"
SECONDS=0
MUSTER_TEST_JOB=$scratch "${private[@]}" timeout --kill-after=5 "$limit" "${command[@]}" "$@" \
  >"$scratch/out" 2>"$scratch/err" </dev/null
status=$?
[ ${#private[@]} != 0 ] || find /dev/shm -mindepth 1 -newer "$scratch/start" \
  -user "$(id -un)" -name '*uster*' >"$scratch/left"
[ "$SECONDS" -lt "$limit" ] || fail "not over after $limit s: $*"
grep -h -m1 '^skipped: ' "$scratch/out" && exit 77

if [ "$expected" = dies ]; then
  [ $status != 0 ] || fail "the job should have ended with an error"
elif [ "$expected" = survives ]; then
  grep -q '^passed' "$scratch/out" || fail "status $status: $*"
else
  [ $status = 0 ] && grep -q '^passed' "$scratch/out" || fail "status $status: $*"
fi
left=$(grep -v '^/dev/shm/vader_segment\.' "$scratch/left") && fail "left in /dev/shm: $left"
processes() { grep -lazF "MUSTER_TEST_JOB=$scratch" /proc/[0-9]*/environ 2>/dev/null; }
for ((turn = 0; turn < 3000; ++turn)); do
  [ -n "$(processes)" ] || break
  sleep 0.1
done
[ -z "$(processes)" ] || fail "processes are left: $(processes)"

inside=$(sum inside) hosts=$(sum hosts) messages=$(sum messages) theirs=$(sum theirs)
case $expected in
  ours) [ "$inside" -gt 0 ] && [ "$theirs" = 0 ] ;;
  some) [ "$inside" -gt 0 ] && [ "$theirs" -gt 0 ] ;;
  hosts) [ "$hosts" -gt 0 ] ;;
  messages) [ "$messages" -gt 0 ] && [ "$inside$theirs" = 00 ] ;;
  theirs) [ "$inside$hosts$messages" = 000 ] && [ "$theirs" -gt 0 ] ;;
  absent)
    [ "$inside$hosts$messages$theirs$(sum teams)" = 00000 ] &&
      [ "$(grep -c 'counters:' "$scratch/err")" = "$ranks" ]
    ;;
  *) true ;;
esac || fail "served: inside=$inside hosts=$hosts messages=$messages theirs=$theirs, not $expected"
if [ -n "${SAYS:-}" ]; then
  grep -qE "$SAYS" "$scratch/err" || fail "it does not say: $SAYS"
fi
if [ -n "${SAYS_NOT:-}" ]; then
  grep -E "$SAYS_NOT" "$scratch/err" && fail "it says: $SAYS_NOT"
fi
read -ra counts <<<"${COUNTS:-}"
expect_counts "${counts[@]}"
if [[ $expected != dies && $expected != survives ]]; then
  echo "inside=$inside hosts=$hosts messages=$messages theirs=$theirs"
fi
