/* SPDX-License-Identifier: BSD-3-Clause */
/* What a ggml without OpenMP has of its own: thread pools, graphs, the barrier, called as a shared
 * library's other functions are. A "graph" is a function that each thread runs. */
#include "ggml_library.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

struct ggml_threadpool {
  pthread_mutex_t mutex;
  pthread_cond_t begins;
  graph* graph;
  int threads, most, round, stops;
  pthread_t workers[threads_max];
  atomic_int arrived, passed, working;
  atomic_long own_barriers;
};
struct worker {
  struct ggml_threadpool* pool;
  int number;
};

static atomic_long own_barriers;
long ggml_own_barriers(void) { return own_barriers; }

void ggml_barrier(struct ggml_threadpool* pool) {
  if (pool->threads == 1) return;
  atomic_fetch_add(&own_barriers, 1);
  const int passed = pool->passed;
  if (atomic_fetch_add(&pool->arrived, 1) == pool->threads - 1) {
    pool->arrived = 0;
    atomic_fetch_add(&pool->passed, 1);
    return;
  }
  while (pool->passed == passed) sched_yield();
}

static void compute(struct ggml_threadpool* pool, int number) {
  pool->graph->body(pool, number, pool->threads, pool->graph->data);
  ggml_barrier(pool);
}

static void* work(void* argument) {
  struct worker me = *(struct worker*)argument;
  free(argument);
  for (int round = 1;; ++round) {
    pthread_mutex_lock(&me.pool->mutex);
    while (me.pool->round < round && !me.pool->stops) {
      pthread_cond_wait(&me.pool->begins, &me.pool->mutex);
    }
    const int stops = me.pool->round < round;
    round = me.pool->round;
    pthread_mutex_unlock(&me.pool->mutex);
    if (stops) return NULL;
    if (me.number < me.pool->threads) compute(me.pool, me.number);
    atomic_fetch_sub(&me.pool->working, 1);
  }
}

struct ggml_threadpool* ggml_threadpool_new(const int* threads) {
  struct ggml_threadpool* pool = calloc(1, sizeof *pool);
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->begins, NULL);
  pool->most = *threads;
  for (int i = 1; i < pool->most; ++i) {
    struct worker* its = malloc(sizeof *its);
    *its = (struct worker){pool, i};
    pthread_create(&pool->workers[i], NULL, work, its);
  }
  return pool;
}

void ggml_threadpool_free(struct ggml_threadpool* pool) {
  pthread_mutex_lock(&pool->mutex);
  pool->stops = 1;
  pthread_cond_broadcast(&pool->begins);
  pthread_mutex_unlock(&pool->mutex);
  for (int i = 1; i < pool->most; ++i) pthread_join(pool->workers[i], NULL);
  free(pool);
}

int ggml_graph_compute(graph* its, plan* plan) {
  struct ggml_threadpool* pool = plan->pool;
  if (pool == NULL) pool = ggml_threadpool_new(&plan->threads);
  while (pool->working != 0) sched_yield(); /* who is late in leaving the last one */
  pthread_mutex_lock(&pool->mutex);
  pool->graph = its;
  pool->threads = plan->threads < pool->most ? plan->threads : pool->most;
  pool->working = pool->most - 1;
  ++pool->round;
  pthread_cond_broadcast(&pool->begins);
  pthread_mutex_unlock(&pool->mutex);
  compute(pool, 0);
  if (plan->pool == NULL) ggml_threadpool_free(pool);
  return 0;
}
