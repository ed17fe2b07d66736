/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `muster bench mpi` launches: `muster-bench-mpi <libmpi> <seconds>` as a rank of any MPI,
 * whose library it loads by path. Rank 0 prints one line: "result" and name=value pairs, latencies
 * in us. With the path of a Control block (bench/measure.hpp) for the seconds, it takes part in the
 * turns of that measurement instead.
 *
 * The barrier is measured as osu_barrier does: each rank times every call, its mean is one value,
 * of which the mean, the least and the greatest over the ranks are told. Then, each apart: dup, 8
 * barriers, free; how far apart the ranks leave; and how soon a rank that waits in its barrier
 * serves a passive-target MPI_Fetch_and_op.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/called_worker.h"
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

static void must_get(void* function, const char* name) {
  void* const symbol = must_find(name);
  memcpy(function, &symbol, sizeof symbol);
}

typedef struct average {
  double mean;
  double median;
} average;

/* Rank 0's, to the last rank, while all but rank 0 wait, in us. The memory is the program's own,
 * which an MPI cannot reach by itself as it could memory that it has allocated. */
static average fetch_and_op_us(double seconds) {
  enum { at_once = 4, most = 20000 };
  int (*create)(void* base, intptr_t bytes, int unit, mpi_handle info, mpi_handle comm, void* win) =
      NULL;
  int (*lock)(int kind, int target, int assertion, mpi_handle win) = NULL;
  int (*fetch)(const void* operand, void* result, mpi_handle type, int target, intptr_t at,
               mpi_handle op, mpi_handle win) = NULL;
  int (*unlock)(int target, mpi_handle win) = NULL;
  int (*destroy)(void* win) = NULL;
  must_get(&create, "MPI_Win_create");
  must_get(&lock, "MPI_Win_lock");
  must_get(&fetch, "MPI_Fetch_and_op");
  must_get(&unlock, "MPI_Win_unlock");
  must_get(&destroy, "MPI_Win_free");
  const bool ints = mpi->handles_are_ints;
  const int lock_shared = ints ? 235 : 2;
  const mpi_handle info_null = ints ? 0x1c000000 : (mpi_handle)must_find("ompi_mpi_info_null");
  const mpi_handle op_sum = ints ? 0x58000003 : (mpi_handle)must_find("ompi_mpi_op_sum");
  static int counter; /* MPICH 4.0.2 does not find one on the stack */
  void* made = NULL;
  create(&counter, sizeof counter, 1, info_null, world, &made);
  const mpi_handle window = handle_from(mpi, &made);
  const int64_t end = now_ns() + (int64_t)(1e9 * seconds);
  double* const each = malloc(most * sizeof *each);
  int done = 0;
  for (int more = 1;; more = done + at_once <= most && now_ns() < end) {
    mpi->Bcast(&more, sizeof more, mpi->type_byte, 0, world);
    if (!more) break;
    if (rank == 0) {
      nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); /* till the others wait */
      for (int i = 0; i < at_once; ++i) {
        const int one = 1;
        int before = 0;
        const int64_t start = now_ns();
        lock(lock_shared, size - 1, 0, window);
        fetch(&one, &before, mpi->type_int, size - 1, 0, op_sum, window);
        unlock(size - 1, window);
        if (before != done) {
          fprintf(stderr, "MPI_Fetch_and_op: %d where %d had to be\n", before, done);
          exit(2);
        }
        each[done++] = (double)(now_ns() - start) / 1e3;
      }
    }
    barrier(world);
  }
  destroy(&made);
  qsort(each, (size_t)done, sizeof *each, compare);
  average of_all = {0, done == 0 ? 0 : each[done / 2]};
  for (int i = 0; i < done; ++i) of_all.mean += each[i] / done;
  free(each);
  return of_all;
}

/* Those that this rank may run on. */
static int own_cpus(void) {
  cpu_set_t cpus[64];
  return sched_getaffinity(0, sizeof cpus, cpus) == 0 ? CPU_COUNT_S(sizeof cpus, cpus) : 0;
}

int main(int argc, char** argv) {
  const double seconds = argc > 2 ? atof(argv[2]) : 0;
  const bool in_turns = argc > 2 && argv[2][0] == '/';
  const bool asked = in_turns || seconds > 0;
  if (!asked || dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) == NULL) {
    fprintf(stderr, "muster-bench-mpi: %s\n",
            asked ? dlerror() : "usage: muster-bench-mpi <libmpi> <seconds or control block>");
    return 2;
  }
  int (*init)(int*, char***) = NULL;
  int (*finalize)(void) = NULL;
  must_get(&init, "MPI_Init");
  must_get(&finalize, "MPI_Finalize");
  must_get(&barrier, "MPI_Barrier");
  mpi = the_mpi();
  if (mpi == NULL || init(&argc, &argv) != 0) return 2;
  world = mpi->comm_world;
  mpi->Comm_rank(world, &rank);
  mpi->Comm_size(world, &size);
  if (in_turns) {
    const int control = open(argv[2], O_RDWR | O_CLOEXEC);
    if (muster_bench_participants(control) != (unsigned)size) {
      fprintf(stderr, "muster-bench-mpi: %s is not for %d ranks\n", argv[2], size);
      return 2;
    }
    const int code = muster_bench_serve(control, (unsigned)rank, barriers);
    return code != 0 ? code : finalize();
  }
  int count = 0;
  int cycles = 0;
  const spread latency = measure(barriers, seconds, &count);
  const spread cycle = measure(dup_and_free, seconds / 2, &cycles);
  const double skew = exit_skew_us(seconds / 2);
  const average fetch = size == 1 ? (average){0, 0} : fetch_and_op_us(seconds / 2);
  if (rank == 0) {
    printf(
        "result mean=%.4f least=%.4f greatest=%.4f count=%d cycle=%.4f cycles=%d skew=%.4f "
        "fetch=%.4f fetch_median=%.4f ranks=%d cpus=%d\n",
        latency.mean, latency.least, latency.greatest, count, cycle.greatest, cycles, skew,
        fetch.mean, fetch.median, size, own_cpus());
    fflush(stdout);
  }
  return finalize();
}
