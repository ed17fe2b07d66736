/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of one process sum a ring of numbers in steps:
 * nobody may read before all have written. */
#include <muster/muster.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { participants = 4, steps = 1000 };

static muster_barrier* barrier;
static long value[2][participants];

static void* work(void* argument) {
  const unsigned rank = (unsigned)(size_t)argument;
  for (int step = 0; step < steps; ++step) {
    const long* now = value[step % 2];
    value[(step + 1) % 2][rank] = (now[rank] + now[(rank + 1) % participants]) % 1000;
    if (muster_barrier_wait(barrier, rank) != MUSTER_OK) {
      fprintf(stderr, "rank %u: %s\n", rank, muster_last_error());
      exit(1);
    }
  }
  return NULL;
}

int main(void) {
  muster_options options;
  muster_options_init(&options);
  options.participants = participants;
  if (muster_barrier_create(&barrier, &options) != MUSTER_OK) {
    fprintf(stderr, "%s\n", muster_last_error());
    return 1;
  }
  char explanation[2048];
  muster_barrier_explain(barrier, "text", explanation, sizeof explanation, NULL);
  fputs(explanation, stdout);

  for (int i = 0; i < participants; ++i) value[0][i] = i + 1;
  pthread_t threads[participants];
  for (size_t rank = 0; rank < participants; ++rank) {
    if (pthread_create(&threads[rank], NULL, work, (void*)rank) != 0) return 1;
  }
  for (int rank = 0; rank < participants; ++rank) pthread_join(threads[rank], NULL);
  muster_barrier_destroy(barrier);

  /* The same, by one thread. */
  long alone[2][participants];
  for (int i = 0; i < participants; ++i) alone[0][i] = i + 1;
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < participants; ++i) {
      alone[(step + 1) % 2][i] =
          (alone[step % 2][i] + alone[step % 2][(i + 1) % participants]) % 1000;
    }
  }
  for (int i = 0; i < participants; ++i) {
    if (value[steps % 2][i] != alone[steps % 2][i]) return 1;
  }
  printf("%d threads, %d steps: the result is that of one thread\n", participants, steps);
  return 0;
}
