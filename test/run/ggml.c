/* SPDX-License-Identifier: BSD-3-Clause */
/* An unmodified program whose threads meet at ggml_barrier(), run under `muster run --barrier`:
 * what each wrote before is read by all after. It prints "passed", and how many barriers were
 * ggml's. */
#include <pthread.h>
#include <stdio.h>

#include "expect.h"
#include "ggml_library.h"

typedef struct {
  int episodes, threads;
  int words[2][threads_max];
  int nested; /* thread 0 computes another graph in each hundredth episode */
} together;

static void compute(together* its, struct ggml_threadpool* pool, int threads);

static void meet(struct ggml_threadpool* pool, int thread, int threads, void* data) {
  together* its = data;
  EXPECT(threads == its->threads);
  for (int episode = 1; episode <= its->episodes; ++episode) {
    its->words[episode % 2][thread] = episode;
    if (its->nested != 0 && thread == 0 && episode % 100 == 0) {
      together inner = {.episodes = 10, .threads = 2};
      compute(&inner, NULL, 2);
    }
    ggml_barrier(pool);
    for (int i = 0; i < threads; ++i) EXPECT(its->words[episode % 2][i] == episode);
  }
}

static void compute(together* its, struct ggml_threadpool* pool, int threads) {
  graph one = {meet, its};
  plan how = {.threads = threads, .pool = pool};
  EXPECT(ggml_graph_compute(&one, &how) == 0);
}

static void* root(void* argument) {
  const int most = *(int*)argument;
  struct ggml_threadpool* pool = ggml_threadpool_new(&most);
  for (int i = 0; i < 60; ++i) {
    const int threads = 1 + i % (most + 1); /* one more than there are, too */
    together its = {.episodes = 50, .threads = threads < most ? threads : most};
    compute(&its, pool, threads);
  }
  ggml_threadpool_free(pool);
  return NULL;
}

int main(void) {
  for (int threads = 1; threads <= 8; ++threads) {
    together its = {.episodes = 2000, .threads = threads};
    compute(&its, NULL, threads);
  }
  for (int i = 0; i < 100; ++i) {
    together its = {.episodes = 1 + i % 3, .threads = 2 + i % 3};
    compute(&its, NULL, its.threads);
  }
  int most = 5;
  root(&most);
  pthread_t threads[3];
  int sizes[3] = {2, 3, 4};
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, root, &sizes[i]);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  together outer = {.episodes = 1000, .threads = 3, .nested = 1};
  compute(&outer, NULL, 3);
  printf("passed %ld\n", ggml_own_barriers());
  return 0;
}
