#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hosts.sh <mpi> <how> <ranks of each host, as 2,1,3> <program> [argument...]
# Several hosts on this machine: a network namespace each, joined by a bridge in one more, each with
# a host name of its own, and a launch agent that enters them. Nothing leaves the machine.
# Environment: MUSTER_BUILD, the build; COUNTS: "counter=number ...", over all ranks.
set -uo pipefail
IFS=, read -ra ranks <<<"$3"
mpi=$1 how=$2
shift 3
build=${MUSTER_BUILD:?}
# shellcheck source=test/mpi/job.sh
source "$(dirname "$0")/job.sh"
[ -x "$1" ] || skip "package ${mpi/mpich/libmpich-dev} ($(basename "$1") was not built)"
command -v "mpirun.$mpi" >/dev/null || skip "package ${mpi/openmpi/openmpi-bin}"
command -v ip >/dev/null || skip "package iproute2"
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
scratch=$(mktemp -d)
name=muster$$
spaces=()
clean() {
  for space in "${spaces[@]}"; do ip netns delete "$space" 2>/dev/null; done
  rm -rf "$scratch"
}
trap clean EXIT
make_space() {
  ip netns add "$1" 2>"$scratch/err" || skip "no network namespaces here: $(head -1 "$scratch/err")"
  spaces+=("$1")
  ip -n "$1" link set lo up
}

make_space "$name"
ip -n "$name" link add bridge type bridge || skip "no bridges here"
ip -n "$name" link set bridge up
hosts=()
for i in "${!ranks[@]}"; do
  space=$name-$i
  make_space "$space"
  ip -n "$space" link add eth0 type veth peer name "port$i" netns "$name" ||
    skip "no veth pairs here"
  ip -n "$name" link set "port$i" mas"t"er bridge up
  ip -n "$space" address add "10.213.0.$((i + 1))/24" dev eth0
  ip -n "$space" link set eth0 up
  hosts+=("10.213.0.$((i + 1)):${ranks[i]}")
done

# The agent: "agent [option...] <address> <command...>", as ssh is called.
cat >"$scratch/agent" <<END
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
address=\$1
shift
i=\$((\${address##*.} - 1))
exec ip netns exec $name-\$i unshare --uts bash -c \\
  'hostname "\$0"; exec bash -c "\$1"' "host\$i" "\$*"
END
chmod +x "$scratch/agent"

export MUSTER_MPI_COUNTERS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
list=$(IFS=,; echo "${hosts[*]}")
total=0
for count in "${ranks[@]}"; do total=$((total + count)); done
preload=$build/mpi/libmuster_mpi_preload.so
# Each host believes that its ranks have these CPUs to themselves: in truth all hosts share them.
if [ "$mpi" = openmpi ]; then
  command=(mpirun.openmpi -n "$total" --oversubscribe --bind-to none --host "$list"
    --mca plm_rsh_agent "$scratch/agent" --mca btl_tcp_if_include 10.213.0.0/24
    --mca oob_tcp_if_include 10.213.0.0/24 --mca btl_base_warn_component_unused 0
    --mca mpi_yield_when_idle 1)
else
  command=(mpirun.mpich -n "$total" -launcher ssh -launcher-exec "$scratch/agent" -hosts "$list"
    -iface eth0)
fi
if [ "$how" = component ]; then
  [ -e "$build/mpi/mca_coll_muster.so" ] || skip "package libopenmpi-dev"
  mkdir "$scratch/components"
  ln -s "$build/mpi/mca_coll_muster.so" "$scratch/components"
  system=$(ompi_info --path pkglibdir 2>/dev/null | sed -n 's/.*: *//p')
  command+=(--mca mca_base_component_path "$system:$scratch/components"
    --mca coll_muster_verbose 1 --mca coll_muster_wait yield -x MUSTER_MPI_COUNTERS)
else
  command+=(env "LD_PRELOAD=$preload" MUSTER_VERBOSE=1 MUSTER_WAIT=yield
    MUSTER_MPI_COUNTERS=1)
fi
printf '%q ' "${command[@]}" "$@" >"$scratch/command"
timeout --kill-after=5 900 "$scratch/agent" 10.213.0.1 "$(cat "$scratch/command")" \
  >"$scratch/out" 2>"$scratch/err" </dev/null
status=$?
[ $status = 0 ] && grep -q '^passed' "$scratch/out" || fail "status $status"
read -ra counts <<<"${COUNTS:?}"
expect_counts "${counts[@]}"
echo "hosts=$(sum hosts) inside=$(sum inside) theirs=$(sum theirs)"
