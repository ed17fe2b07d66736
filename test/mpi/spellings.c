/* SPDX-License-Identifier: BSD-3-Clause */
/* The preload's other names, called by them: `spellings <which>`, the barrier as each Fortran
 * compiler spells it, served and counted at that place of muster_mpi_count(). */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kinds = 4, theirs = 3, times = 10 };
typedef unsigned long long counts[kinds]; /* inside, hosts, messages, theirs */
typedef void count_function(counts all);
typedef void fortran_barrier(const MPI_Fint* comm, MPI_Fint* error);

static void fail(const char* what, const char* of, int a, int b) {
  fprintf(stderr, "FAILED: %s: %s (%d, %d)\n", of, what, a, b);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

/* Of that name, to `*function`. */
static void find(const char* name, void* function) {
  Dl_info where;
  void* const symbol = dlsym(RTLD_DEFAULT, name);
  if (symbol == NULL || dladdr(symbol, &where) == 0 ||
      strstr(where.dli_fname, "libmuster_mpi_preload") == NULL) {
    fail("not the preload's", name, 0, 0);
  }
  memcpy(function, &symbol, sizeof symbol);
}

static void expect_more(const char* of, count_function* count, counts before, int which, int more) {
  counts now;
  count(now);
  for (int i = 0; i < kinds; ++i) {
    const int grew = (int)(now[i] - before[i]);
    if (grew != (i == which ? more : 0)) fail("which count, how many more", of, i, grew);
    before[i] = now[i];
  }
}

int main(int argc, char** argv) {
  static const char* const names[] = {"mpi_barrier", "mpi_barrier_",    "mpi_barrier__",
                                      "MPI_BARRIER", "mpi_barrier_f08", "mpi_barrier_f08_"};
  const int which = argc > 1 ? atoi(argv[1]) : 0;
  int rank = 0;
  counts all;
  count_function* count = NULL;
  MPI_Comm self = MPI_COMM_NULL;
  MPI_Comm between = MPI_COMM_NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  find("muster_mpi_count", &count);
  MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &self); /* two ranks */
  MPI_Intercomm_create(self, 0, MPI_COMM_WORLD, 1 - rank, 3, &between);
  const MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD);
  count(all);
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    fortran_barrier* barrier = NULL;
    find(names[i], &barrier);
    for (int n = 0; n < times; ++n) {
      MPI_Fint error = -1;
      barrier(&world, &error);
      if (error != MPI_SUCCESS) fail("error", names[i], (int)error, n);
    }
    barrier(&world, NULL); /* with mpi_f08 it is optional */
    expect_more(names[i], count, all, which, times + 1);
  }
  if (MPI_Barrier(between) != MPI_SUCCESS) fail("error", "MPI_Barrier", 0, 0);
  expect_more("MPI_Barrier of an intercommunicator", count, all, theirs, 1);
  MPI_Comm_free(&between);
  MPI_Comm_free(&self);
  MPI_Finalize();
  if (rank == 0) puts("passed");
  return 0;
}
