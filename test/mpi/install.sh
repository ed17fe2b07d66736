#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# install.sh <source> <build> <program> <C compiler>: after the one line of installation, an
# unmodified program under mpirun without any option has our barrier, and ompi_info describes the
# parameters. Below a prefix it is found as the installation says, or by a line in a file.
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
grep -q "$build" <<<"$(objdump -p "$HOME/.openmpi/components/mca_coll_muster.so")" &&
  fail "the component names the build's folder"
described=$(ompi_info --param coll muster --level 9 2>/dev/null)
for name in priority barrier levels wait verbose; do
  grep -q "coll_muster_$name" <<<"$described" || fail "ompi_info does not know coll_muster_$name"
done
run() {
  MUSTER_MPI_COUNTERS=1 timeout 600 mpirun.openmpi -n 2 --oversubscribe "$@" "$program" \
    semantics 100 2>&1 </dev/null
}
# ours, not_ours <what> <options of mpirun...>: it passes, with our barrier, or without.
ours() {
  local what=$1 out
  shift
  out=$(run "$@")
  grep -q '^passed' <<<"$out" && grep -qE 'counters: inside=[1-9][0-9]* .* theirs=0 ' <<<"$out" ||
    fail "not ours $what: $out"
}
not_ours() {
  local what=$1 out
  shift
  out=$(run "$@")
  grep -q '^passed' <<<"$out" || fail "$what: $out"
  grep -q 'counters:' <<<"$out" && fail "ours, though $what: $out"
}
ours "without an option"
not_ours "it was taken out" --mca coll ^muster
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
said=$(bash "$source/cmake/install-openmpi.sh" "$build" "$scratch/prefix") || fail "with a prefix"
[ -e "$scratch/prefix/lib/openmpi/mca_coll_muster.so" ] || fail "nothing below the prefix"
read -ra option <<<"$(sed -n 's/^mpirun finds it with: //p' <<<"$said")"
[ "${option[1]:-}" = mca_base_component_path ] || fail "it does not say how it is found: $said"
said=$(OMPI_MCA_mca_base_component_path=${option[2]%%:*} \
  bash "$source/cmake/install-openmpi.sh" "$build") || fail "where mpirun's ranks look elsewhere"
grep -q "^mpirun finds it with: .*:$HOME/.openmpi/components\$" <<<"$said" ||
  fail "it does not say that mpirun's ranks look elsewhere: $said"
mkdir -p "$scratch/without/mpi"
touch "$scratch/without/"{cmake_install.cmake,CMakeCache.txt,mpi/mca_coll_muster.so}
said=$(bash "$source/cmake/install-openmpi.sh" "$scratch/without" "$scratch/nothing" 2>&1) &&
  fail "installed what was not configured"
[ ! -e "$scratch/nothing" ] && grep -q "is without the component" <<<"$said" ||
  fail "of a build without the component: $said"
said=$(cmake -S "$source" -B "$scratch/none" -DMUSTER_OPENMPI_MPICC=/nowhere/mpicc 2>&1) &&
  fail "configured for a compiler that is not there"
grep -q "MUSTER_OPENMPI_MPICC=/nowhere/mpicc: no such" <<<"$said" ||
  fail "of a compiler that is not there: $said"
export HOME=$scratch/other
mkdir -p "$HOME/.openmpi"
not_ours "nobody was told of the prefix"
ours "with the option that the installation names" "${option[@]}"
echo "${option[1]} = ${option[2]}" >"$HOME/.openmpi/mca-params.conf"
ours "with that in a file"
exit 0
