/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program whose ranks come late to barriers: `late turns|variables|named <count>`. It
 * exits with 0 and prints "passed" if all went well. */
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

int main(int argc, char** argv) {
  const int count = argc == 3 ? atoi(argv[2]) : 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (count < 1) fail("late turns|variables|named <count>", argc, 0);
  if (strcmp(argv[1], "variables") == 0) {
    variables(count);
  } else if (strcmp(argv[1], "named") == 0) {
    named(count);
  } else {
    turns(count);
  }
  if (rank == 0) puts("passed");
  return MPI_Finalize();
}
