#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# install-openmpi.sh <build> [prefix]: puts Open MPI's component coll/muster, and the library it
# stands on, where mpirun finds it: in ~/.openmpi/components, or below a prefix.
set -euo pipefail
build=$1
prefix=${2:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The programs of the Open MPI that it was built against are beside that one's compiler.
mpicc=$(sed -n 's/^MUSTER_OPENMPI_MPICC:[^=]*=//p' "$build/CMakeCache.txt")
info=$(dirname "$mpicc")/ompi_info
mpirun=$(dirname "$mpicc")/mpirun${mpicc##*/mpicc}
cmake --install "$build" --component openmpi --prefix "$scratch" >/dev/null
component=$(find "$scratch" -name mca_coll_muster.so)
[ -n "$component" ] || {
  echo "$build is without the component: Open MPI's development headers (Debian: libopenmpi-dev)" \
    "were not found beside ${mpicc:-its compiler}." >&2
  exit 1
}
if [ -n "$prefix" ]; then
  to=$prefix/lib/openmpi
else
  to=$HOME/.openmpi/components
fi
mkdir -p "$to"
# New files, not new contents: jobs that run have the old ones mapped.
cp --remove-destination "$(dirname "$component")"/* "$to"
echo "Installed: $to/mca_coll_muster.so"
system=$("$info" --path pkglibdir 2>/dev/null | sed -n 's/.*: *//p') || true
# An mpirun may tell its ranks where components are, whatever they know themselves.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
told=$(timeout 30 "$mpirun" -n 1 printenv OMPI_MCA_mca_base_component_path 2>/dev/null) || true
find_it="--mca mca_base_component_path ${system:-<folder of the others>}:$to"
if [ -n "$told" ] && [[ :$told: != *:$to:* ]]; then
  echo "$mpirun makes its ranks look in $told alone."
  echo "mpirun finds it with: $find_it"
elif [ -n "$prefix" ] && [ "$system" -ef "$to" ]; then
  echo "This is the folder of Open MPI's own components: mpirun uses it from now on."
elif [ -n "$prefix" ]; then
  echo "mpirun finds it with: $find_it"
elif grep -q coll_muster_priority <<<"$("$info" --param coll muster --level 9 2>/dev/null)"; then
  echo "ompi_info lists it; mpirun uses it from now on."
else
  echo "ompi_info does not list it: is it another Open MPI than it was built against?" >&2
  exit 1
fi
