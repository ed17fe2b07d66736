/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with a server of libmuster's: servers <threads>. Prints the CPUs of that many threads,
 * a line each, while the server runs, and of as many after it has ended.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "muster/lock.h"

enum { threads_max = 64 };
static pthread_barrier_t all_here;

static void* say(void* line) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) abort();
  size_t length = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && length < 240; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    length += (size_t)sprintf((char*)line + length, length == 0 ? "%d" : ",%d", cpu);
  }
  pthread_barrier_wait(&all_here);
  return NULL;
}

static void print_places(int threads) {
  static char lines[threads_max][256];
  pthread_t team[threads_max];
  for (int i = 0; i < threads; ++i) {
    if (pthread_create(&team[i], NULL, say, lines[i]) != 0) abort();
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(team[i], NULL);
    puts(lines[i]);
  }
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 1;
  muster_server* server = NULL;
  if (threads < 1 || threads > threads_max) return 2;
  pthread_barrier_init(&all_here, NULL, (unsigned)threads);
  if (muster_server_start(&server, "pack") != MUSTER_OK) {
    fprintf(stderr, "%s\n", muster_last_error());
    return 1;
  }
  print_places(threads);
  if (muster_server_destroy(server) != MUSTER_OK) return 1;
  print_places(threads);
  return 0;
}
