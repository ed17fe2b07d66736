#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# library.sh <mpi> <program>: the preload is a small library, which brings libmuster at the first
# barrier; where that cannot be loaded, on all ranks or on one, the MPI's own barrier serves all.
set -uo pipefail
mpi=$1 program=$2
fail() { echo "FAILED: $*" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
preload=$MUSTER_BUILD/mpi/libmuster_mpi_preload.so
heavy=$(LD_PRELOAD=$preload LD_TRACE_LOADED_OBJECTS=1 /bin/true |
  grep -E 'libmuster\.|hwloc|stdc++')
[ -z "$heavy" ] || fail "every process pays for $heavy"

soname=$(objdump -p "$MUSTER_BUILD/src/capi/libmuster.so" | awk '$1 == "SONAME" { print $2 }')
echo "no library" >"$scratch/$soname"
cat >"$scratch/everywhere" <<END
#!/bin/sh
LD_LIBRARY_PATH=$scratch:\$LD_LIBRARY_PATH exec "$program" "\$@"
END
cat >"$scratch/once" <<END
#!/bin/sh
[ "\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}" != 1 ] || exec "$scratch/everywhere" "\$@"
exec "$program" "\$@"
END
chmod +x "$scratch/everywhere" "$scratch/once"
export SAYS="the MPI's own barrier serves: libmuster cannot be loaded: .*$soname"
for broken in everywhere once; do
  [ -x "$program" ] || ln -sf "$program" "$scratch/$broken" # then it is said what is not built
  "$(dirname "$0")/run.sh" "$mpi" preload 3 60 theirs none "$scratch/$broken" semantics 100 || exit
done
