/* SPDX-License-Identifier: BSD-3-Clause */
/* `ulfm <revoked | killed>`, under an MPI that tolerates faults: while the others wait at a
 * barrier, one rank revokes the communicator, or is killed. They are told, as the MPI's own barrier
 * tells it, and go on with a communicator of those who live. */
#include <mpi.h>
/* after it */
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank;

static void expect(const char* what, int is, int wanted) {
  if (is == wanted) return;
  fprintf(stderr, "FAILED on rank %d: %s is %d, not %d\n", rank, what, is, wanted);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static int class_of_barrier(MPI_Comm comm) {
  int class = MPI_SUCCESS;
  MPI_Error_class(MPI_Barrier(comm), &class);
  return class;
}

int main(int argc, char** argv) {
  const int is_killed = argc > 1 && strcmp(argv[1], "killed") == 0;
  int size = 0;
  int left = 0;
  MPI_Comm all = MPI_COMM_NULL;
  MPI_Comm living = MPI_COMM_NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  for (int i = 0; i < 100; ++i) expect("a barrier before", class_of_barrier(all), MPI_SUCCESS);
  if (rank == size - 1) {
    usleep(200000); /* the others wait */
    if (is_killed) raise(SIGKILL);
    MPIX_Comm_revoke(all);
  } else {
    const int class = class_of_barrier(all);
    /* Who hears of the death first revokes, which the others may hear of first. */
    if (!is_killed || class != MPIX_ERR_PROC_FAILED) expect("it", class, MPIX_ERR_REVOKED);
    if (is_killed) MPIX_Comm_revoke(all);
  }
  expect("a barrier after", class_of_barrier(all), MPIX_ERR_REVOKED);
  expect("shrinking", MPIX_Comm_shrink(all, &living), MPI_SUCCESS);
  MPI_Comm_size(living, &left);
  expect("who is left", left, size - is_killed);
  for (int i = 0; i < 100; ++i) expect("a barrier of these", class_of_barrier(living), MPI_SUCCESS);
  printf("told: %d\n", rank);
  fflush(stdout);
  usleep(200000); /* for the others: who leaves may take them down */
  _exit(0);
}
