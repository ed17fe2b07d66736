/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `muster bench mpi` launches: `muster-bench-mpi <libmpi> <seconds>` as a rank of any MPI,
 * whose library it loads by path. Rank 0 prints one line: "result" and name=value pairs, latencies
 * in us.
 *
 * The barrier is measured as osu_barrier does: each rank times every call, its mean is one value,
 * of which the mean, the least and the greatest over the ranks are told. Then, each apart: dup, 8
 * barriers, free; and how far apart the ranks leave.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpi/abi.h"

static const mpi_abi* mpi;
static mpi_handle world;
static int rank;
static int size;
static int (*barrier)(mpi_handle comm); /* MPI_Barrier: whoever serves */

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

static void* must_find(const char* name) {
  void* const symbol = dlsym(RTLD_DEFAULT, name);
  if (symbol == NULL) {
    fprintf(stderr, "no %s\n", name);
    exit(2);
  }
  return symbol;
}

typedef struct spread {
  double mean;
  double least;
  double greatest;
} spread;

/* Of one value a rank, at all of them. */
static spread over_ranks(double mine) {
  double* const all = malloc((size_t)size * sizeof *all);
  mpi->Allgather(&mine, sizeof mine, mpi->type_byte, all, sizeof mine, mpi->type_byte, world);
  spread s = {0, all[0], all[0]};
  for (int i = 0; i < size; ++i) {
    s.mean += all[i] / size;
    if (all[i] < s.least) s.least = all[i];
    if (all[i] > s.greatest) s.greatest = all[i];
  }
  free(all);
  return s;
}

static void barriers(void) { barrier(world); }

static void dup_and_free(void) {
  void* made = NULL;
  mpi->Comm_dup(world, &made);
  const mpi_handle comm = handle_from(mpi, &made);
  for (int i = 0; i < 8; ++i) barrier(comm);
  mpi->Comm_free(&made);
}

/* How often `what` fits into the time; the same at all ranks. */
static int count_for(void (*what)(void), double seconds, int most) {
  enum { warm_up = 3, probe = 5 };
  for (int i = 0; i < warm_up; ++i) what();
  const int64_t start = now_ns();
  for (int i = 0; i < probe; ++i) what();
  const double each_s = (double)(now_ns() - start) / 1e9 / probe;
  const double fits = seconds / (each_s > 1e-8 ? each_s : 1e-8);
  int count = fits < 10 ? 10 : fits > most ? most : (int)fits;
  mpi->Bcast(&count, sizeof count, mpi->type_byte, 0, world);
  return count;
}

static spread measure(void (*what)(void), double seconds, int* count) {
  *count = count_for(what, seconds, 200000);
  for (int i = 0; i < *count / 5; ++i) what();
  int64_t sum = 0;
  for (int i = 0; i < *count; ++i) {
    const int64_t start = now_ns();
    what();
    sum += now_ns() - start;
  }
  return over_ranks((double)sum / 1e3 / *count);
}

static int compare(const void* left, const void* right) {
  const double a = *(const double*)left;
  const double b = *(const double*)right;
  return a < b ? -1 : a > b;
}

/* The median over barriers of the time from the first rank's leaving to the last's. */
static double exit_skew_us(double seconds) {
  const int count = count_for(barriers, seconds, 2000);
  int64_t* const mine = malloc((size_t)count * sizeof *mine);
  int64_t* const all = malloc((size_t)count * (size_t)size * sizeof *all);
  double* const skews = malloc((size_t)count * sizeof *skews);
  for (int i = 0; i < count; ++i) {
    barrier(world);
    mine[i] = now_ns();
  }
  const int bytes = count * (int)sizeof *mine;
  mpi->Allgather(mine, bytes, mpi->type_byte, all, bytes, mpi->type_byte, world);
  for (int i = 0; i < count; ++i) {
    int64_t first = all[i];
    int64_t last = all[i];
    for (int r = 1; r < size; ++r) {
      const int64_t at = all[r * count + i];
      if (at < first) first = at;
      if (at > last) last = at;
    }
    skews[i] = (double)(last - first) / 1e3;
  }
  qsort(skews, (size_t)count, sizeof *skews, compare);
  const double median = skews[count / 2];
  free(mine);
  free(all);
  free(skews);
  return median;
}

int main(int argc, char** argv) {
  const double seconds = argc > 2 ? atof(argv[2]) : 0;
  if (seconds <= 0 || dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) == NULL) {
    fprintf(stderr, "muster-bench-mpi: %s\n",
            seconds > 0 ? dlerror() : "usage: muster-bench-mpi <libmpi> <seconds>");
    return 2;
  }
  int (*init)(int*, char***) = NULL;
  int (*finalize)(void) = NULL;
  void* symbol = must_find("MPI_Init");
  memcpy(&init, &symbol, sizeof symbol);
  symbol = must_find("MPI_Finalize");
  memcpy(&finalize, &symbol, sizeof symbol);
  symbol = must_find("MPI_Barrier");
  memcpy(&barrier, &symbol, sizeof symbol);
  mpi = the_mpi();
  if (mpi == NULL || init(&argc, &argv) != 0) return 2;
  world = mpi->comm_world;
  mpi->Comm_rank(world, &rank);
  mpi->Comm_size(world, &size);
  int count = 0;
  int cycles = 0;
  const spread latency = measure(barriers, seconds, &count);
  const spread cycle = measure(dup_and_free, seconds / 2, &cycles);
  const double skew = exit_skew_us(seconds / 2);
  if (rank == 0) {
    printf("result mean=%.4f least=%.4f greatest=%.4f count=%d cycle=%.4f cycles=%d skew=%.4f\n",
           latency.mean, latency.least, latency.greatest, count, cycle.greatest, cycles, skew);
    fflush(stdout);
  }
  return finalize();
}
