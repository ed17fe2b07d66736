/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program like any other, which knows nothing of Muster: how long is a barrier?
 *
 *   mpicc -O2 mpi_barrier.c -o mpi_barrier
 *   mpirun -n 4 ./mpi_barrier
 *   mpirun -n 4 -x LD_PRELOAD=libmuster_mpi_preload.so ./mpi_barrier
 *   mpiexec -genv LD_PRELOAD libmuster_mpi_preload.so -n 4 ./mpi_barrier    (MPICH)
 */
#include <mpi.h>
#include <stdio.h>

static int compare_and_swap(double* values, int i) {
  if (values[i] <= values[i + 1]) return 0;
  const double larger = values[i];
  values[i] = values[i + 1];
  values[i + 1] = larger;
  return 1;
}

int main(int argc, char** argv) {
  enum { batches = 11, seconds_ms = 20 };
  double batch_us[batches];
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 100; ++i) MPI_Barrier(MPI_COMM_WORLD);
  double each_s = MPI_Wtime();
  for (int i = 0; i < 10; ++i) MPI_Barrier(MPI_COMM_WORLD);
  each_s = (MPI_Wtime() - each_s) / 10;
  int count = (int)(seconds_ms / 1e3 / each_s) + 1;
  MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int b = 0; b < batches; ++b) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = MPI_Wtime();
    for (int i = 0; i < count; ++i) MPI_Barrier(MPI_COMM_WORLD);
    batch_us[b] = (MPI_Wtime() - start_s) * 1e6 / count;
  }
  for (int sorted = 0; !sorted;) { /* a handful: the simplest sort */
    sorted = 1;
    for (int b = 0; b + 1 < batches; ++b) sorted &= !compare_and_swap(batch_us, b);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("%.2f us a barrier\n", batch_us[batches / 2]);
  return MPI_Finalize();
}
