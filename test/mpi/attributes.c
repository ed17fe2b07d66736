/* SPDX-License-Identifier: BSD-3-Clause */
/* `attributes <case> [number]`: the functions of a program's attributes, called when communicators
 * come and go, see nothing of what serves their barriers. It ends as cases.c does. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

static int copies;
static int drops;

static int count_copy(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)key, (void)extra;
  memcpy(out, &in, sizeof in);
  *flag = 1;
  ++copies;
  return MPI_SUCCESS;
}

static int count_drop(MPI_Comm comm, int key, void* attribute, void* extra) {
  (void)comm, (void)key, (void)attribute, (void)extra;
  ++drops;
  return MPI_SUCCESS;
}

/* Attributes are copied and dropped when the program copies and frees a communicator. */
static void copied(int count) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_create_keyval(count_copy, count_drop, &key, NULL), "keyval");
  check(MPI_Comm_set_attr(MPI_COMM_SELF, key, &key), "attribute");
  check(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &key), "attribute");
  for (int i = 0; i < count; ++i) {
    check(MPI_Barrier(MPI_COMM_WORLD), "barrier");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &made), "dup");
    check(MPI_Barrier(made), "barrier");
    MPI_Comm_free(&made);
  }
  if (copies != count || drops != count) fail("attributes copied, dropped", copies, drops);
  MPI_Comm_delete_attr(MPI_COMM_SELF, key);
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
}

static int wait_once_more(MPI_Comm comm, int key, void* attribute, void* extra) {
  (void)key, (void)attribute, (void)extra;
  return MPI_Barrier(comm);
}

static int refuse_once(MPI_Comm comm, int key, void* attribute, void* extra) {
  (void)comm, (void)key, (void)extra;
  int* const refusals = attribute;
  return (*refusals)++ == 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* Open MPI's handles are addresses, so that a freed one may be anything, and after a free that was
 * refused there the next one waits for ever. */
#if defined(MPICH_VERSION)
enum { is_mpich = 1 };
#else
enum { is_mpich = 0 };
#endif

/* A communicator is one to the end of its callbacks, whose order differs between ranks; it stays
 * one where a callback refuses; and after that it is none, whatever has been made since. */
static void frees(int count) {
  int waits = MPI_KEYVAL_INVALID;
  int refuses = MPI_KEYVAL_INVALID;
  MPI_Comm gone = MPI_COMM_NULL;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  int all[64] = {0};
  check(MPI_Comm_dup(MPI_COMM_WORLD, &gone), "dup");
  MPI_Comm copy = gone;
  MPI_Comm_free(&gone);
  MPI_Barrier(MPI_COMM_WORLD); /* the first one: what serves it makes what it needs */
  MPI_Comm_create_errhandler(count_errors, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  for (int barrier = 0; is_mpich && barrier < 2; ++barrier) {
    int class = MPI_SUCCESS;
    handled = 0;
    MPI_Error_class(
        barrier ? MPI_Barrier(copy) : MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, copy),
        &class);
    if (class != MPI_ERR_COMM || handled != 1) fail("class, calls of the handler", class, handled);
  }
  check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, wait_once_more, &waits, NULL), "keyval");
  check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, refuse_once, &refuses, NULL), "keyval");
  for (int i = 0; i < count; ++i) {
    int refusals = 0;
    MPI_Comm made = MPI_COMM_NULL;
    check(MPI_Comm_dup(MPI_COMM_WORLD, &made), "dup");
    /* MPICH tells what the first function has said that was set: this one. */
    const int refused = is_mpich && i % 4 == 3 && rank == size - 1;
    const int late = rank % 2 == 1 || (refused && i % 8 == 7);
    for (int after = 0; after < 2; ++after) {
      if (refused && late == after) MPI_Comm_set_attr(made, refuses, &refusals);
      if (late == after) MPI_Comm_set_attr(made, waits, NULL);
      if (!after) check(MPI_Barrier(made), "barrier");
    }
    int status = i % 2 == 0 ? MPI_Comm_free(&made) : MPI_Comm_disconnect(&made);
    if (refused != (status != MPI_SUCCESS)) fail("refused, status", refused, status);
    if (status != MPI_SUCCESS) status = MPI_Comm_free(&made);
    check(status, "free");
  }
}

static int barrier_at_the_end(MPI_Comm comm, int key, void* attribute, void* extra) {
  (void)comm, (void)key, (void)attribute, (void)extra;
  return MPI_Barrier(MPI_COMM_WORLD);
}

/* MPI_Finalize has this called while MPI still works: on some ranks before what serves their
 * barriers hears of it, on others after. */
static void call_at_the_end(void) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, barrier_at_the_end, &key, NULL);
  if (rank % 2 == 0) MPI_Barrier(MPI_COMM_SELF);
  if (rank % 2 == 1) MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank % 2 == 0) MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
}

int main(int argc, char** argv) {
  const char* const which = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(which, "copies") == 0) {
    copied(number);
  } else if (strcmp(which, "frees") == 0) {
    frees(number);
  } else if (strcmp(which, "finalize") == 0) {
    call_at_the_end();
  } else {
    fail("no such case", 0, 0);
  }
  MPI_Finalize();
  if (rank == 0) puts("passed");
  return 0;
}
