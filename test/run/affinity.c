/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An unmodified program that says where its threads are. affinity <threads> [<how>]
 *   together   all at a time; prints the CPUs of each, a line each (default)
 *   in-turn    one after the other
 *   beside     the same, and the CPU of the thread that makes it, before and after that
 *   own        each with an attribute that names CPU <third argument>
 *   exec       a thread that replaces the program by one that prints its CPUs
 *   spawn      a thread that starts programs that print theirs: system, popen, posix_spawn, vfork
 *   fork       a thread that forks; the child prints its own CPUs, then those of two new threads
 *   main       the main thread's
 *   numa       together, and the NUMA node that each is on
 *   c11        together, made by thrd_create
 *   pages      as numa, and the NUMA nodes of all pages of blocks that each allocates and writes
 *   small-pages   the same without huge pages, which two threads may share
 */
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
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
  if (strcmp(how, "numa") == 0 || strstr(how, "pages") != NULL) {
    unsigned cpu = 0;
    unsigned numa = 0;
    syscall(SYS_getcpu, &cpu, &numa, NULL);
    const size_t length = strlen(line);
    snprintf(line + length, size - length, " on %u", numa);
  }
}

/* Marks the NUMA nodes that a block's pages are on; the last: the kernel does not say. */
enum { nodes = 64, pages_max = 1024 };
static void mark(char* block, size_t bytes, bool* seen) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void* addresses[pages_max];
  int where[pages_max];
  size_t count = 0;
  for (char* at = block - (size_t)block % page; at < block + bytes; at += page) {
    if (count == pages_max) abort();
    where[count] = -1;
    addresses[count++] = at;
  }
  const long failed = syscall(SYS_move_pages, 0, count, addresses, NULL, where, 0);
  for (size_t i = 0; i < count; ++i) {
    const bool said = failed == 0 && where[i] >= 0 && where[i] < nodes;
    seen[said ? where[i] : nodes] = true;
  }
}

/* "pages on 0,2", or "?" where one is unknown. */
static void pages(char* line, size_t size) {
  enum { sizes = 6 };
  static const size_t bytes[sizes] = {24, 400, 5000, 70000, 500000, 1 << 20};
  char* blocks[sizes];
  bool seen[nodes + 1] = {false};
  for (int i = 0; i < sizes; ++i) {
    blocks[i] = i % 2 == 0 ? malloc(bytes[i]) : calloc(1, bytes[i]);
    if (i == 2) blocks[i] = realloc(blocks[i], 2 * bytes[i]);
    if (blocks[i] == NULL) abort();
    memset(blocks[i], 1, bytes[i]);
    mark(blocks[i], bytes[i], seen);
  }
  for (int i = 0; i < sizes; ++i) free(blocks[i]);
  const char* before = ", pages on ";
  for (int node = 0; node <= nodes; ++node) {
    if (!seen[node]) continue;
    const size_t length = strlen(line);
    if (node < nodes) {
      snprintf(line + length, size - length, "%s%d", before, node);
    } else {
      snprintf(line + length, size - length, "%s?", before);
    }
    before = ",";
  }
}

static void print_own(void) {
  char line[256];
  cpus(line, sizeof line);
  printf("%s\n", line);
  fflush(stdout);
}

static bool one_by_one(void) { return strcmp(how, "in-turn") == 0 || strcmp(how, "beside") == 0; }

static void* note(void* argument) {
  cpus(argument, sizeof lines[0]);
  if (strstr(how, "pages") != NULL) pages(argument, sizeof lines[0]);
  if (!one_by_one()) pthread_barrier_wait(&all_here);
  return NULL;
}

static int note_c11(void* argument) { return note(argument) == NULL ? 0 : 1; }

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
  if (strcmp(how, "small-pages") == 0 && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) abort();
  for (int i = 0; i < count && i < 1024; ++i) {
    const int before = sched_getcpu();
    const int failed = strcmp(how, "c11") == 0
                           ? thrd_create(&threads[i], note_c11, lines[i]) != thrd_success
                           : pthread_create(&threads[i], &attributes, start, lines[i]);
    if (failed != 0) abort();
    const int after = sched_getcpu();
    if (one_by_one()) pthread_join(threads[i], NULL);
    const size_t length = strlen(lines[i]);
    if (strcmp(how, "beside") == 0) {
      snprintf(lines[i] + length, sizeof lines[i] - length, " %d %d", before, after);
    }
  }
  for (int i = 0; i < count && i < 1024; ++i) {
    if (!one_by_one()) pthread_join(threads[i], NULL);
    if (start == note) printf("%s\n", lines[i]);
  }
  return 0;
}
