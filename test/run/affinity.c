/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An unmodified program that says where its threads are. affinity <threads> [<how>]
 *   together   all at a time; prints the CPUs of each, a line each (default)
 *   in-turn    one after the other
 *   own        each with an attribute that names CPU <third argument>
 *   exec       a thread that replaces the program by one that prints its CPUs
 *   spawn      a thread that starts programs that print theirs: system, popen, posix_spawn, vfork
 *   fork       a thread that forks; the child prints its own CPUs, then those of two new threads
 *   main       the main thread's
 *   numa       together, and the NUMA node that each is on
 */
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
static const char* how = "together";
static const char* self;
static pthread_barrier_t all_here;
static char lines[1024][256];

static void cpus(char* line, size_t size) {
  cpu_set_t set;
  line[0] = '\0';
  if (sched_getaffinity(0, sizeof set, &set) != 0) abort();
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    const size_t length = strlen(line);
    snprintf(line + length, size - length, "%s%d", length == 0 ? "" : ",", cpu);
  }
  if (strcmp(how, "numa") == 0) {
    unsigned cpu = 0;
    unsigned numa = 0;
    syscall(SYS_getcpu, &cpu, &numa, NULL);
    const size_t length = strlen(line);
    snprintf(line + length, size - length, " on %u", numa);
  }
}

static void print_own(void) {
  char line[256];
  cpus(line, sizeof line);
  printf("%s\n", line);
  fflush(stdout);
}

static void* note(void* argument) {
  cpus(argument, sizeof lines[0]);
  if (strcmp(how, "in-turn") != 0) pthread_barrier_wait(&all_here);
  return NULL;
}

static void* replace(void* unused) {
  execl(self, self, "1", "main", (char*)NULL);
  perror(self);
  return unused;
}

static void* spawn(void* unused) {
  char command[512];
  snprintf(command, sizeof command, "exec %s 1 main", self);
  if (system(command) != 0) abort();
  FILE* const output = popen(command, "r");
  if (output == NULL || fgets(command, sizeof command, output) == NULL) abort();
  pclose(output);
  fputs(command, stdout);
  fflush(stdout);
  char* const argv[] = {(char*)(size_t)self, "1", "main", NULL};
  pid_t child = 0;
  if (posix_spawn(&child, self, NULL, NULL, argv, environ) != 0) abort();
  waitpid(child, NULL, 0);
  child = vfork();
  if (child == 0) {
    execv(self, argv);
    _exit(127);
  }
  waitpid(child, NULL, 0);
  print_own(); /* bound again */
  return unused;
}

static void* divide(void* unused) {
  const pid_t child = fork();
  if (child == 0) {
    print_own();
    pthread_t threads[2];
    pthread_barrier_init(&all_here, NULL, 2);
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, note, lines[i]);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; ++i) printf("%s\n", lines[i]);
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  return unused;
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 1;
  if (argc > 2) how = argv[2];
  self = argv[0];
  if (strcmp(how, "main") == 0) {
    print_own();
    return 0;
  }
  pthread_t threads[1024];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (strcmp(how, "own") == 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(argc > 3 ? atoi(argv[3]) : 0, &set);
    pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
  }
  void* (*start)(void*) = note;
  if (strcmp(how, "exec") == 0) start = replace;
  if (strcmp(how, "spawn") == 0) start = spawn;
  if (strcmp(how, "fork") == 0) start = divide;
  pthread_barrier_init(&all_here, NULL, (unsigned)count);
  for (int i = 0; i < count && i < 1024; ++i) {
    if (pthread_create(&threads[i], &attributes, start, lines[i]) != 0) abort();
    if (strcmp(how, "in-turn") == 0) pthread_join(threads[i], NULL);
  }
  for (int i = 0; i < count && i < 1024; ++i) {
    if (strcmp(how, "in-turn") != 0) pthread_join(threads[i], NULL);
    if (start == note) printf("%s\n", lines[i]);
  }
  return 0;
}
