/* SPDX-License-Identifier: BSD-3-Clause */
/* An unmodified OpenMP program, run under `muster run --barrier`; "passed" is its last word. What
 * it checks is what OpenMP says of barriers, tasks and teams. With an argument: only that case. */
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { most = 16 };

/* What each has written before is read by all after. */
static void episodes_in(int size, int episodes) {
  int data[2][most] = {{0}};
#pragma omp parallel num_threads(size)
  {
    const int me = omp_get_thread_num();
    const int all = omp_get_num_threads();
    for (int episode = 1; episode <= episodes; ++episode) {
      data[episode % 2][me] = episode;
#pragma omp barrier
      for (int i = 0; i < all; ++i) EXPECT(data[episode % 2][i] == episode);
    }
  }
}

static void barriers(void) {
  for (int size = 1; size <= 9; ++size) episodes_in(size, 2000);
  for (int i = 0; i < 300; ++i) episodes_in(1 + i % 5, 3);
}

/* Each construct ends with a barrier: what it wrote is read by all. */
static void worksharing(void) {
  enum { n = 64, rounds = 200 };
  static int to[n];
  int chosen = 0;
#pragma omp parallel num_threads(4)
  for (int round = 1; round <= rounds; ++round) {
#pragma omp for schedule(static)
    for (int i = 0; i < n; ++i) to[i] = round;
    for (int i = 0; i < n; ++i) EXPECT(to[i] == round);
#pragma omp barrier
#pragma omp for schedule(dynamic, 3)
    for (int i = 0; i < n; ++i) to[i] = -round;
    for (int i = 0; i < n; ++i) EXPECT(to[i] == -round);
#pragma omp barrier
#pragma omp for schedule(guided)
    for (int i = 0; i < n; ++i) to[i] = round + 1;
    for (int i = 0; i < n; ++i) EXPECT(to[i] == round + 1);
#pragma omp barrier
#pragma omp for schedule(dynamic) ordered
    for (int i = 0; i < n; ++i) {
#pragma omp ordered
      to[i] = i == 0 ? 1 : to[i - 1] + 1;
    }
    EXPECT(to[n - 1] == n);
#pragma omp barrier
#pragma omp sections
    {
#pragma omp section
      to[0] = round;
#pragma omp section
      to[1] = round;
    }
    EXPECT(to[0] == round && to[1] == round);
#pragma omp single
    ++chosen;
    EXPECT(chosen == round);
  }
  long other = 0;
#pragma omp parallel for schedule(dynamic) num_threads(3) reduction(+ : other)
  for (int i = 0; i < 1000; ++i) other += i;
  EXPECT(other == 499500);
}

static long fibonacci(int n) {
  if (n < 2) return n;
  long a, b;
#pragma omp task shared(a) if (n > 8)
  a = fibonacci(n - 1);
#pragma omp task shared(b) if (n > 8)
  b = fibonacci(n - 2);
#pragma omp taskwait
  return a + b;
}

/* A barrier runs the tasks made before it; those who wait at one run tasks meanwhile. */
static void tasks(void) {
  for (int size = 2; size <= 5; ++size) {
    for (int round = 0; round < 20; ++round) {
      int done = 0;
      int by_others = 0;
      long result = 0;
#pragma omp parallel num_threads(size)
      {
#pragma omp barrier
#pragma omp single nowait
        for (int i = 0; i < 50; ++i) {
#pragma omp task shared(done)
#pragma omp atomic
          ++done;
        }
#pragma omp barrier
        EXPECT(done == 50);
#pragma omp barrier
#pragma omp single
        result = fibonacci(12);
        EXPECT(result == 144);
#pragma omp single
        {
          /* Not by this thread: it waits for somebody else to run it. */
          const int maker = omp_get_thread_num();
          int ran = 0;
          while (!ran) {
#pragma omp task shared(ran, by_others)
            {
              if (omp_get_thread_num() != maker) {
#pragma omp atomic write
                by_others = 1;
              }
            }
            usleep(100);
#pragma omp atomic read
            ran = by_others;
          }
        }
        EXPECT(by_others == 1);
#pragma omp for
        for (int i = 0; i < 8; ++i) {
#pragma omp task shared(done)
#pragma omp atomic
          ++done;
        }
        EXPECT(done == 58);
#pragma omp barrier
#pragma omp single
#pragma omp taskloop shared(done)
        for (int i = 0; i < 30; ++i) {
#pragma omp atomic
          ++done;
        }
        EXPECT(done == 88);
      }
    }
  }
}

/* Its second barrier is the first that tasks wait for, in a region of its own each time. */
static void late_tasks(void) {
  int done = 0;
#pragma omp parallel num_threads(4)
  for (int round = 1; round <= 50; ++round) {
#pragma omp barrier
    if (round == 25 && omp_get_thread_num() == 2) {
#pragma omp task shared(done)
      {
        usleep(1000);
        done = 1;
      }
    }
#pragma omp barrier
    EXPECT(done == (round >= 25));
  }
}

static void nested(void) {
  omp_set_max_active_levels(2);
#pragma omp parallel num_threads(3)
  for (int round = 0; round < 20; ++round) {
    episodes_in(2, 20);
#pragma omp barrier
  }
  omp_set_max_active_levels(1);
#pragma omp parallel num_threads(3)
  {
    episodes_in(2, 20);
#pragma omp barrier
#pragma omp parallel if (0)
    {
#pragma omp barrier
    }
#pragma omp barrier
  }
  omp_set_dynamic(1);
  episodes_in(most, 20);
  omp_set_dynamic(0);
}

static void* root(void* argument) {
  for (int i = 0; i < 20; ++i) episodes_in(3, 50);
  return argument;
}

static void roots(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) EXPECT(pthread_create(&threads[i], NULL, root, NULL) == 0);
  root(NULL);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
}

/* The runtime's threads are the parent's: the child has a new one begin teams. */
static void* after_fork(void* argument) {
  episodes_in(3, 100);
  return argument;
}
static void forks(void) {
  const pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, after_fork, NULL) == 0);
    pthread_join(thread, NULL);
    exit(0);
  }
  int status = 1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  episodes_in(3, 100);
}

/* Barriers say nothing by it: it is the caller's. */
static void keeps_errno(void) {
#pragma omp parallel num_threads(4)
  for (int i = 0; i < 100; ++i) {
    if (omp_get_thread_num() == i % 4) usleep(2000);
    errno = 0;
#pragma omp barrier
    EXPECT(errno == 0);
  }
}

/* With OMP_CANCELLATION=true. */
static void cancellation(void) {
  for (int round = 0; round < 50; ++round) {
    int passed = 0;
#pragma omp parallel num_threads(4)
    {
#pragma omp barrier
      if (omp_get_cancellation() && omp_get_thread_num() == 1) {
#pragma omp cancel parallel
      }
#pragma omp barrier
#pragma omp atomic
      ++passed;
    }
    EXPECT(passed == (omp_get_cancellation() ? 0 : 4));
  }
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)(void);
  } all[] = {{"barriers", barriers},
             {"worksharing", worksharing},
             {"tasks", tasks},
             {"late-tasks", late_tasks},
             {"nested", nested},
             {"roots", roots},
             {"cancellation", cancellation},
             {"forks", forks},
             {"errno", keeps_errno}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    if (argc < 2 || strcmp(argv[1], all[i].name) == 0) all[i].run();
  }
  puts("passed");
  return 0;
}
