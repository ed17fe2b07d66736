#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# install.sh <source> <build> <program> <C compiler>: after the one line of installation, an
# unmodified program under mpirun without any option has our barrier, and ompi_info describes the
# parameters.
set -uo pipefail
source=$1 build=$2 program=$3 compiler=$4
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
# An Open MPI of another series says this of itself.
cat >"$scratch/version.c" <<'END'
int PMPI_Get_library_version(char* text, int* length) {
  const char* const other = "Open MPI v4.0.7, package: somebody's";
  for (*length = 0; other[*length] != 0; ++*length) text[*length] = other[*length];
  text[*length] = 0;
  return 0;
}
END
"$compiler" -shared -fPIC "$scratch/version.c" -o "$scratch/version.so" || fail "compiling"
other=$(run -x LD_PRELOAD="$scratch/version.so")
grep -q '^passed' <<<"$other" || fail "with another Open MPI: $other"
grep -q 'counters:' <<<"$other" && fail "it was built against another Open MPI, and took part"
[ "$(grep -c 'built for Open MPI .*, this is 4\.0: it takes no part' <<<"$other")" = 1 ] ||
  fail "it does not say that this is another Open MPI: $other"
# Jobs that run have the file mapped: a second installation must not write into it.
component=$HOME/.openmpi/components/mca_coll_muster.so
exec {mapped}<"$component"
bash "$source/cmake/install-openmpi.sh" "$build" || fail "the second installation"
[ "$(stat -L -c %i "/proc/self/fd/$mapped")" != "$(stat -c %i "$component")" ] ||
  fail "the second installation wrote into the first one's file"
bash "$source/cmake/install-openmpi.sh" "$build" "$scratch/prefix" || fail "with a prefix"
[ -e "$scratch/prefix/lib/openmpi/mca_coll_muster.so" ] || fail "nothing below the prefix"
exit 0
