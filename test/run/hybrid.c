/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program whose ranks have OpenMP teams; rank 0 prints "passed". Barriers of both kinds, in
 * turns: what a team wrote before one of the job is read after it. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { threads = 3, rounds = 200 };

int main(int argc, char** argv) {
  int level = 0, rank = 0, size = 0, wrong = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win window;
  int* data = NULL; /* rank 0's memory holds a number for each thread of the job */
  MPI_Win_allocate_shared(rank == 0 ? size * threads * (MPI_Aint)sizeof *data : 0, sizeof *data,
                          MPI_INFO_NULL, MPI_COMM_WORLD, &data, &window);
  MPI_Aint bytes;
  int unit;
  MPI_Win_shared_query(window, 0, &bytes, &unit, &data);
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
  for (int round = 1; round <= rounds; ++round) {
    data[rank * threads + omp_get_thread_num()] = round;
#pragma omp barrier
#pragma omp masked
    MPI_Barrier(MPI_COMM_WORLD);
#pragma omp barrier
    for (int i = 0; i < size * threads; ++i) wrong += data[i] != round;
#pragma omp barrier
#pragma omp masked
    MPI_Barrier(MPI_COMM_WORLD);
#pragma omp barrier
  }
  int all = 0;
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) puts(all == 0 && level >= MPI_THREAD_FUNNELED ? "passed" : "failed");
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
