/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads at one mutex, who know how long one waits and the other holds it. Prints both, ns. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { times = 20 };

pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t meeting;
static int64_t held_ns;
static int64_t waited_ns;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "FAILED: %s\n", what);
  exit(1);
}

__attribute__((noinline)) void hold_it(void) {
  pthread_mutex_lock(&hot);
  const int64_t begin = now_ns();
  pthread_barrier_wait(&meeting);
  nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  held_ns += now_ns() - begin;
  pthread_mutex_unlock(&hot);
}

__attribute__((noinline)) void want_it(void) {
  const int64_t begin = now_ns();
  pthread_mutex_lock(&hot);
  waited_ns += now_ns() - begin;
  pthread_mutex_unlock(&hot);
}

static void* holder(void* unused) {
  for (int i = 0; i < times; ++i) {
    hold_it();
    pthread_barrier_wait(&meeting);
  }
  return unused;
}

static int read_it(void) {
  static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  return pthread_rwlock_rdlock(&lock) + pthread_rwlock_unlock(&lock);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "leave") == 0) _exit(3);
  if (argc > 1 && strcmp(argv[1], "die") == 0) abort();
  if (argc > 1 && strcmp(argv[1], "readers") == 0) return read_it();
  pthread_barrier_init(&meeting, NULL, 2);
  pthread_t thread;
  expect(pthread_create(&thread, NULL, holder, NULL) == 0, "pthread_create");
  for (int i = 0; i < times; ++i) {
    pthread_barrier_wait(&meeting);
    want_it();
    pthread_barrier_wait(&meeting);
  }
  pthread_join(thread, NULL);
  int status = 0;
  fflush(stdout);
  pthread_mutex_lock(&hot); /* held across a fork */
  const pid_t child = fork();
  pthread_mutex_unlock(&hot);
  if (child == 0) {
    for (int i = 0; i < 7; ++i) {
      pthread_mutex_lock(&hot);
      pthread_mutex_unlock(&hot);
    }
    return 0;
  }
  expect(waitpid(child, &status, 0) == child && status == 0, "the child");
  printf("%lld %lld\n", (long long)waited_ns, (long long)held_ns);
  return 0;
}
