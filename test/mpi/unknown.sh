#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# unknown.sh <C compiler> <preload>: of an MPI whose handles are not known its own barrier serves,
# from C and from Fortran, and one line says so.
set -uo pipefail
compiler=$1 preload=$2
fail() { echo "FAILED: $*" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
cat >mpi.c <<'END'
#include <stdio.h>
#include <string.h>
int PMPI_Get_library_version(char* text, int* length) {
  strcpy(text, "Somebody's MPI 1.0\nand more");
  *length = (int)strlen(text);
  return 0;
}
int PMPI_Barrier(void* comm) { return printf("barrier of %p\n", comm) > 0 ? 0 : 1; }
int MPI_Barrier(void* comm) __attribute__((weak, alias("PMPI_Barrier")));
void mpi_barrier_(long* comm, long* error) {
  *error = printf("barrier of number %ld\n", *comm) < 0;
}
END
cat >program.c <<'END'
int MPI_Barrier(void* comm);
void mpi_barrier_(long* comm, long* error);
int main(void) {
  long comm = 1L << 40;
  long error = -1;
  mpi_barrier_(&comm, &error);
  return MPI_Barrier((void*)0x101) != 0 || error != 0;
}
END
for name in mpi_abi mpi; do
  "$compiler" -shared -fPIC mpi.c -o lib$name.so || fail "compiling"
  "$compiler" program.c -L. -l$name -Wl,-rpath,"$scratch" -o program || fail "compiling"
  LD_PRELOAD=$preload ./program >out 2>err || fail "lib$name: $(cat out err)"
  grep -q 'barrier of 0x101' out && grep -q "barrier of number $((1 << 40))" out ||
    fail "lib$name: the handles changed: $(cat out)"
  [ "$(grep -c '^muster: .*own barrier serves' err)" = 1 ] || fail "lib$name: $(cat err)"
done
grep -qF "(Somebody's MPI 1.0)" err || fail "which MPI? $(cat err)"
exit 0
