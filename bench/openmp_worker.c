/* SPDX-License-Identifier: BSD-3-Clause */
/* openmp_worker <what> <threads> <seconds>: an unmodified program whose barriers openmp.py has
 * others serve. It prints the mean nanoseconds of an episode.
 *   barrier, for, single   that construct, in one region
 *   pthread                pthread_barrier_wait()
 *   wavefront              a sweep over a grid, a barrier after each diagonal
 *   relaxation             red and black points in turn, two loops an episode
 *   regions                the same, but each loop is a region: only joins, which nobody serves
 */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { side = 96, batch_max = 1 << 14 };

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double grid[side][side];
static pthread_barrier_t posix_barrier;
static int marks[256];

static void sweep(int me, int all) {
  for (int diagonal = 2; diagonal <= 2 * (side - 1); ++diagonal) {
    for (int row = 1 + me; row < side; row += all) {
      const int column = diagonal - row;
      if (column < 1 || column >= side) continue;
      grid[row][column] = 0.25 * (grid[row - 1][column] + grid[row][column - 1]) + 0.5;
    }
#pragma omp barrier
  }
}

static void relax_row(int row, int colour) {
  for (int column = 1 + (row + colour) % 2; column < side - 1; column += 2) {
    grid[row][column] = 0.25 * (grid[row - 1][column] + grid[row + 1][column] +
                                grid[row][column - 1] + grid[row][column + 1]);
  }
}

static void relax(void) {
  for (int colour = 0; colour < 2; ++colour) {
#pragma omp for schedule(static)
    for (int row = 1; row < side - 1; ++row) relax_row(row, colour);
  }
}

/* In all threads. */
static void episode(const char* what, int me, int all) {
  switch (what[0]) {
    case 'b': {
#pragma omp barrier
      return;
    }
    case 'f': {
#pragma omp for schedule(static)
      for (int i = 0; i < all; ++i) marks[i % 256] = me;
      return;
    }
    case 's': {
#pragma omp single
      marks[0] = me;
      return;
    }
    case 'p':
      pthread_barrier_wait(&posix_barrier);
      return;
    case 'w':
      sweep(me, all);
      return;
    default:
      relax();
      return;
  }
}

/* One thread's; the first of them has the clock. */
struct run {
  const char* what;
  int threads;
  double seconds;
  long episodes;
  double took;
  int batch;
};

static void part(struct run* run, int me) {
  for (int i = 0; i < 3; ++i) episode(run->what, me, run->threads);
  const double from = seconds_now();
  for (long done = 0;;) {
    const int batch = run->batch;
    for (int i = 0; i < batch; ++i) episode(run->what, me, run->threads);
    done += batch;
    /* All have read the batch's size before, and read the next one after these. */
    if (me == 0) {
      const double took = seconds_now() - from;
      run->took = took;
      run->episodes = done;
      run->batch = took > run->seconds ? 0 : batch < batch_max ? 2 * batch : batch;
    }
    episode(run->what, me, run->threads);
    if (run->batch == 0) break;
    episode(run->what, me, run->threads);
  }
}

struct thread {
  struct run* run;
  int number;
};
static void* part_of(void* argument) {
  const struct thread* it = argument;
  part(it->run, it->number);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  struct run run = {
      .what = argv[1], .threads = atoi(argv[2]), .seconds = atof(argv[3]), .batch = 1};
  memset(grid, 0, sizeof grid);
  for (int i = 0; i < side; ++i) grid[0][i] = grid[i][0] = i;
  if (strcmp(run.what, "pthread") == 0) {
    pthread_barrier_init(&posix_barrier, NULL, (unsigned)run.threads);
    pthread_t threads[run.threads];
    struct thread all[run.threads];
    for (int i = 0; i < run.threads; ++i) {
      all[i] = (struct thread){&run, i};
      if (i != 0) pthread_create(&threads[i], NULL, part_of, &all[i]);
    }
    part_of(&all[0]);
    for (int i = 1; i < run.threads; ++i) pthread_join(threads[i], NULL);
  } else if (strcmp(run.what, "regions") == 0) {
    const double from = seconds_now();
    do {
      for (int colour = 0; colour < 2; ++colour) {
#pragma omp parallel for num_threads(run.threads) schedule(static)
        for (int row = 1; row < side - 1; ++row) relax_row(row, colour);
      }
      ++run.episodes;
      run.took = seconds_now() - from;
    } while (run.took < run.seconds);
  } else {
#pragma omp parallel num_threads(run.threads)
    part(&run, omp_get_thread_num());
  }
  printf("%.1f\n", 1e9 * run.took / (double)run.episodes);
  return 0;
}
