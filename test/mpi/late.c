/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program whose ranks come late to barriers: `late turns|variables|named|several|many
 * <count>`. It exits with 0 and prints "passed" if all went well. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

/* Ranks are late by turns, one more than the others. What each waited for the last one, by its own
 * clock, goes to the file that MUSTER_TEST_WAITED names. */
static void turns(int count) {
  long* const came = malloc((size_t)count * sizeof *came);
  long* const all = malloc((size_t)count * (size_t)size * sizeof *all);
  for (int i = 0; i < count; ++i) {
    if (i % size == rank || (i % 2 == 0 && rank == 1)) pause_us(1000);
    came[i] = now_ns();
    check(MPI_Barrier(MPI_COMM_WORLD), "barrier");
  }
  MPI_Allgather(came, count, MPI_LONG, all, count, MPI_LONG, MPI_COMM_WORLD);
  FILE* const told = rank == 0 ? fopen(getenv("MUSTER_TEST_WAITED"), "w") : NULL;
  for (int r = 0; r < size && told != NULL; ++r) {
    long waited = 0;
    int last = 0;
    for (int i = 0; i < count; ++i) {
      long last_in = 0;
      for (int other = 0; other < size; ++other) {
        if (all[other * count + i] > last_in) last_in = all[other * count + i];
      }
      waited += last_in - all[r * count + i];
      last += last_in == all[r * count + i];
    }
    fprintf(told, "%ld %d\n", waited, last);
  }
  if (told != NULL) fclose(told);
  free(came);
  free(all);
}

/* As tools do it: a counter counts from here. */
static MPI_T_pvar_handle begin_counter(MPI_T_pvar_session session, const char* wanted) {
  MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
  int count = 0;
  check(MPI_T_pvar_get_num(&count), "variables");
  for (int i = 0; i < count; ++i) {
    char name[256] = "";
    int bytes = sizeof name;
    int other = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (MPI_T_pvar_get_info(i, name, &bytes, &other, &other, &type, NULL, NULL, NULL, &other,
                            &other, &other, &other) == MPI_SUCCESS &&
        strcmp(name, wanted) == 0) {
      check(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &other), "variable");
      return handle;
    }
  }
  fail("no such variable among", count, 0);
  return handle;
}

static void variables(int count) {
  int provided = 0;
  MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  check(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), "tools");
  check(MPI_T_pvar_session_create(&session), "session");
  MPI_T_pvar_handle barriers = begin_counter(session, "coll_muster_barriers");
  MPI_T_pvar_handle waited = begin_counter(session, "coll_muster_waited_ns");
  for (int i = 0; i < count; ++i) {
    if (rank == size - 1) pause_us(1000);
    check(MPI_Barrier(MPI_COMM_WORLD), "barrier");
  }
  unsigned long long served = 0;
  unsigned long long waited_ns = 0;
  check(MPI_T_pvar_read(session, barriers, &served), "barriers");
  check(MPI_T_pvar_read(session, waited, &waited_ns), "waited");
  if (served != (unsigned long long)count) fail("barriers", (long)served, count);
  if (rank == 0 && waited_ns < count * 800000ULL) fail("it waited longer", (long)waited_ns, count);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
}

/* By a name that would clear a terminal. */
static void named(int count) {
  MPI_Comm_set_name(MPI_COMM_WORLD, "a\033[2Jb");
  for (int i = 0; i < count; ++i) check(MPI_Barrier(MPI_COMM_WORLD), "barrier");
}

/* In each communicator of all ranks another rank is late, by another time: unnamed ones, named
 * ones, one of fewer ranks. */
static void several(int count) {
  MPI_Comm unnamed = MPI_COMM_NULL;
  MPI_Comm halo = MPI_COMM_NULL;
  MPI_Comm fewer = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &unnamed), "dup");
  check(MPI_Comm_dup(MPI_COMM_WORLD, &halo), "dup");
  check(MPI_Comm_set_name(halo, "H\303\244lo"), "name");
  check(MPI_Comm_split(MPI_COMM_WORLD, rank == 1, rank, &fewer), "split"); /* 0 and 2; 1 */
  for (int i = 0; i < count; ++i) {
    if (rank == 0) pause_us(1000);
    check(MPI_Barrier(MPI_COMM_WORLD), "barrier");
    if (rank == 1) pause_us(2000);
    check(MPI_Barrier(unnamed), "barrier");
    if (rank == 2) pause_us(4000);
    check(MPI_Barrier(halo), "barrier");
    if (rank == 2) pause_us(1000);
    check(MPI_Barrier(fewer), "barrier");
  }
  MPI_Comm_free(&fewer);
  MPI_Comm_free(&halo); /* that one is told after it is gone, and the other at the end */
}

/* Communicators come and go; rank 0 is late in each, in the tenth by most. */
static void many(int count) {
  for (int i = 0; i < count; ++i) {
    MPI_Comm made = MPI_COMM_NULL;
    check(MPI_Comm_dup(MPI_COMM_WORLD, &made), "dup");
    check(MPI_Barrier(made), "barrier");
    if (rank == 0) pause_us(i == 9 ? 100000 : 100);
    check(MPI_Barrier(made), "barrier"); /* who counts this one may be slower than rank 0 */
    MPI_Comm_free(&made);
  }
}

int main(int argc, char** argv) {
  const int count = argc == 3 ? atoi(argv[2]) : 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (count < 1) fail("late turns|variables|named|several|many <count>", argc, 0);
  if (strcmp(argv[1], "variables") == 0) {
    variables(count);
  } else if (strcmp(argv[1], "named") == 0) {
    named(count);
  } else if (strcmp(argv[1], "several") == 0) {
    several(count);
  } else if (strcmp(argv[1], "many") == 0) {
    many(count);
  } else {
    turns(count);
  }
  if (rank == 0) puts("passed");
  return MPI_Finalize();
}
