#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# doctor.sh <muster> <build>: `muster doctor --mpirun`. First with launchers that scripts play, then
# with Open MPI's and the component: with localities, without, and with ranks that are not bound.
set -uo pipefail
muster=$1 build=$2
fail() { echo "FAILED: $*" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# told <regular expression> <launcher> [option...]: what the doctor says of it, in a line.
told() {
  local expected=$1 text
  text=$("$muster" doctor --only cpus --mpirun "${@:2}" 2>&1) || fail "of $2: $text"
  tr -s ' \n' ' ' <<<"$text" | grep -qE -- "$expected" || fail "not $expected, but of $2: $text"
}

# ---- launchers by scripts ----

# play <name> <bash>: a launcher; `rank <served by> <ranks> <CPUs> [words]` is what a rank says.
play() {
  cat >"$scratch/$1" <<END
#!/bin/bash
rank() {
  [ "\$1" = theirs ] || echo "muster[1]: counters: inside=9 hosts=0 messages=0 theirs=0" >&2
  [ -z "\${4:-}" ] || echo "muster[1]: communicator of \$2: \$4" >&2
  echo "result mean=\${mean:-2.5} ranks=\$2 cpus=\$3"
}
$2
END
  chmod +x "$scratch/$1"
}
cpus=$(nproc)
[ "$cpus" -gt 1 ] || { echo "skipped: one CPU"; exit 77; }
play served 'rank ours 2 0 "algorithm x; placements by PMIx locality strings"'
played() { told "$1" "$scratch/$2" --mpi-library "$muster"; }  # any library
played ' fine +Muster serves \(2\.50 us a barrier, placements by PMIx locality strings\)' served
play no-localities 'rank ours 2 0 "x; placements by affinity masks, as PMIx tells no localities"'
no_localities=' fine +Muster serves .*, placements by affinity masks, as PMIx tells no localities'
played "$no_localities" no-localities
play unbound "rank ours $cpus $cpus 'x; placements by affinity masks'"
played "costs .* But a rank of $cpus may run on any of $cpus CPUs.* -> Bind each rank" unbound
play crowded "rank ours $((cpus + 1)) $cpus 'x; placements by affinity masks'"
played ' fine +Muster serves' crowded
play without '[[ $* == *LD_PRELOAD=* ]] && mean=1.5 rank ours 2 0 || rank theirs 2 0'
for_all="For all jobs of an Open MPI: its component, by make install-openmpi in Muster's sources or"
own="Its own barrier serves \(2\.50 us.*Preloaded, Muster would.*"
played "costs +$own -> $for_all .*LD_PRELOAD" without
play slower '[[ $* == *LD_PRELOAD=* ]] && mean=3.5 rank ours 2 0 || rank theirs 2 0'
played ' fine +Its own barrier serves .* Muster would \(3\.50 us a barrier\): no faster' slower
play refused '[[ $* == *LD_PRELOAD=* ]] && why="the MPI'\''s own barrier serves: no memory"
rank theirs 2 0 "${why:-}"'
played ' fine +Its own barrier serves .* The preload does not: no memory' refused
play deaf 'rank theirs 2 0'
played ' fine +Its own barrier serves .* The preload does not: the ranks did not load it' deaf
play broken 'echo "----" >&2; echo "no slots" >&2; exit 3'
played 'unknown +.*/broken ended with 3: no slots' broken
played 'unknown +.*nowhere' nowhere

# ---- Open MPI's ----

command -v mpirun.openmpi >/dev/null || { echo "skipped: package openmpi-bin"; exit 77; }
[ -e "$build/mpi/mca_coll_muster.so" ] || { echo "skipped: no component was built"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mkdir "$scratch/components"
ln -s "$build/mpi/mca_coll_muster.so" "$scratch/components"
system=$(ompi_info --path pkglibdir 2>/dev/null | sed -n 's/.*: *//p')
export OMPI_MCA_mca_base_component_path=$system:$scratch/components
told ' fine +Muster serves .*, placements by PMIx locality strings' \
  "mpirun.openmpi -n 2 --bind-to core"
ln -s "$(command -v mpirun.openmpi)" "$scratch/another-name"
(PATH=$scratch:$PATH; told ' fine +Muster serves' "another-name -n 2 --bind-to core") || exit 1
# Who binds itself is not known to the launcher, so PMIx has nothing to tell.
# shellcheck disable=SC2016
play bind 'exec taskset -c "$OMPI_COMM_WORLD_LOCAL_RANK" "$@"'
told "$no_localities" "mpirun.openmpi -n 2 --bind-to none $scratch/bind"
told 'costs .* But a rank of 2 may run on any of .* -> Bind each rank to a core' \
  "mpirun.openmpi -n 2 --bind-to none"
# A PMIx that was built without localities.
cat >"$scratch/pmix.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
typedef int get(const void*, const char*, const void*, unsigned long, void**);
int PMIx_Get(const void* of, const char* key, const void* how, unsigned long ways, void** value) {
  if (key != NULL && strcmp(key, "pmix.locstr") == 0) return -46; /* PMIX_ERR_NOT_FOUND */
  return ((get*)dlsym(RTLD_NEXT, "PMIx_Get"))(of, key, how, ways, value);
}
END
if command -v cc >/dev/null; then
  cc -shared -fPIC -o "$scratch/pmix.so" "$scratch/pmix.c" || fail "the PMIx that a test plays"
  told "$no_localities" "mpirun.openmpi -n 2 --bind-to core env LD_PRELOAD=$scratch/pmix.so"
fi
exit 0
