/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank of a job: how it fails, and its clock. */
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <time.h>

static int rank;
static int size;

static inline void fail(const char* what, long a, long b) {
  fprintf(stderr, "FAILED on rank %d: %s (%ld, %ld)\n", rank, what, a, b);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static inline void check(int status, const char* what) {
  if (status != MPI_SUCCESS) fail(what, status, 0);
}

static inline long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline void pause_us(long us) {
  const struct timespec time = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&time, NULL);
}

/* Its errors are counted, and returned. */
static int handled;
static inline void count_errors(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++handled;
}
