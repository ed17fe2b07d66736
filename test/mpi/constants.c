/* SPDX-License-Identifier: BSD-3-Clause */
/* The constants that mpi/abi.c knows an ABI by, against the header of a real MPI of that family. */
#include <mpi.h>
#include <stdio.h>

#if !defined(OPEN_MPI)
static int wrong;
#define EXPECT(what, value)                                                        \
  do {                                                                             \
    if ((long)(what) != (long)(value)) {                                           \
      fprintf(stderr, "%s is %lx, not %lx\n", #what, (long)(what), (long)(value)); \
      wrong = 1;                                                                   \
    }                                                                              \
  } while (0)
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
#if defined(OPEN_MPI)
  /* Handles are addresses, which the names in mpi/abi.c find; the numbers are these. */
  _Static_assert(MPI_UNDEFINED == -32766 && MPI_ERR_OTHER == 16, "constants");
  _Static_assert(MPI_ANY_SOURCE == -1 && MPI_ANY_TAG == -1, "constants");
  const int wrong = MPI_STATUS_IGNORE != (MPI_Status*)0;
#else
  _Static_assert(sizeof(MPI_Comm) == sizeof(int), "handles are ints");
  EXPECT(MPI_COMM_NULL, 0x04000000);
  EXPECT(MPI_COMM_SELF, 0x44000001);
  EXPECT(MPI_COMM_WORLD, 0x44000000);
  EXPECT(MPI_BYTE, 0x4c00010d);
  EXPECT(MPI_INT, 0x4c000405);
  EXPECT(MPI_MIN, 0x58000002);
  EXPECT(MPI_ERRORS_RETURN, 0x54000001);
  EXPECT(MPI_ANY_SOURCE, -2);
  EXPECT(MPI_ANY_TAG, -1);
  EXPECT(MPI_UNDEFINED, -32766);
  EXPECT(MPI_ERR_OTHER, 15);
  EXPECT(MPI_STATUS_IGNORE, 1);
#endif
  MPI_Finalize();
  if (!wrong) puts("passed");
  return wrong;
}
