/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What muster-bench-run times with and without the preload:
 *   muster-bench-run-worker <what> <milliseconds>    prints nanoseconds per operation
 *   lock       lock and unlock a mutex that nobody else wants
 *   recursive  the same with a recursive one
 *   create     create and join a thread
 *   cond       hand a turn to another thread over a condition, and wait to get it back
 *   crowd      as many threads as <third argument> lock, write as many lines as <fourth argument>,
 *              one if there is none, and unlock; per section
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;
static int over;
static atomic_int stop;
static struct { _Alignas(64) unsigned long sections; } lines[64];
static int touched = 1;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void* nothing(void* argument) { return argument; }

static void* answer(void* unused) {
  pthread_mutex_lock(&mutex);
  while (over == 0) {
    while (turn == 0 && over == 0) pthread_cond_wait(&turned, &mutex);
    turn = 0;
    pthread_cond_signal(&turned);
  }
  pthread_mutex_unlock(&mutex);
  return unused;
}

static void* add(void* unused) {
  do { /* once, however late: a figure needs a section */
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < touched; ++i) ++lines[i].sections;
    pthread_mutex_unlock(&mutex);
  } while (atomic_load_explicit(&stop, memory_order_relaxed) == 0);
  return unused;
}

static void lock_once(pthread_mutex_t* which) {
  pthread_mutex_lock(which);
  pthread_mutex_unlock(which);
}

static void create_once(void) {
  pthread_t thread = 0;
  if (pthread_create(&thread, NULL, nothing, NULL) != 0) abort();
  pthread_join(thread, NULL);
}

static void take_a_turn(void) {
  pthread_mutex_lock(&mutex);
  turn = 1;
  pthread_cond_signal(&turned);
  while (turn == 1) pthread_cond_wait(&turned, &mutex);
  pthread_mutex_unlock(&mutex);
}

static double crowd(double for_ns, int threads) {
  pthread_t* const team = calloc((size_t)threads, sizeof *team);
  const double begin = now_ns();
  for (int i = 0; i < threads; ++i) {
    if (pthread_create(&team[i], NULL, add, NULL) != 0) abort();
  }
  const struct timespec wait = {(time_t)(for_ns / 1e9), (long)for_ns % 1000000000};
  nanosleep(&wait, NULL);
  atomic_store(&stop, 1);
  for (int i = 0; i < threads; ++i) pthread_join(team[i], NULL);
  free(team);
  return (now_ns() - begin) / (double)lines[0].sections;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* const what = argv[1];
  const double for_ns = 1e6 * atof(argv[2]);
  if (strcmp(what, "crowd") == 0) {
    if (argc > 4) touched = atoi(argv[4]);
    if (touched < 1 || touched > (int)(sizeof lines / sizeof *lines)) return 2;
    printf("%.3f\n", crowd(for_ns, argc > 3 ? atoi(argv[3]) : 2));
    return 0;
  }
  pthread_t other = 0;
  const int plays = strcmp(what, "cond") == 0;
  if (pthread_create(&other, NULL, plays ? answer : nothing, NULL) != 0) abort();
  const int batch = strcmp(what, "create") == 0 || plays ? 16 : 4096;
  unsigned long done = 0;
  const double begin = now_ns();
  double end = begin;
  while (end - begin < for_ns) {
    for (int i = 0; i < batch; ++i) {
      if (plays) {
        take_a_turn();
      } else if (strcmp(what, "create") == 0) {
        create_once();
      } else {
        lock_once(strcmp(what, "recursive") == 0 ? &recursive : &mutex);
      }
    }
    done += (unsigned long)batch;
    end = now_ns();
  }
  pthread_mutex_lock(&mutex);
  over = 1;
  pthread_cond_signal(&turned);
  pthread_mutex_unlock(&mutex);
  pthread_join(other, NULL);
  printf("%.3f\n", (end - begin) / (double)done);
  return 0;
}
