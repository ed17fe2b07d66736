/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program that knows nothing of Muster: `cases <case> [number]`. It exits with 0 if all went
 * as MPI says, else it tells what did not and ends the job. */
#include <dirent.h>
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "job.h"

static const char* program; /* to be spawned */

/* ---- plain words that all ranks of a communicator share: nothing but the barrier orders them ----
 */

typedef struct shared {
  MPI_Win window;
  int* mine;
  int** of; /* by rank */
  int ranks;
  int self;
  MPI_Comm comm;
} shared;

static shared share(MPI_Comm comm) {
  shared s = {.comm = comm};
  MPI_Comm_size(comm, &s.ranks);
  MPI_Comm_rank(comm, &s.self);
  check(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, comm, (void*)&s.mine, &s.window), "window");
  s.of = malloc((size_t)s.ranks * sizeof *s.of);
  for (int i = 0; i < s.ranks; ++i) {
    MPI_Aint bytes = 0;
    int unit = 0;
    MPI_Win_shared_query(s.window, i, &bytes, &unit, (void*)&s.of[i]);
  }
  *s.mine = 0;
  return s;
}

static void unshare(shared* s) {
  MPI_Win_free(&s->window);
  free(s->of);
}

/* Nobody leaves before the last has come: each writes its word, and after the barrier sees all. */
static void episodes(shared* s, int from, int count, int delays) {
  unsigned random = 2463534242U + (unsigned)rank;
  for (int i = from + 1; i <= from + count; ++i) {
    random ^= random << 13, random ^= random >> 17, random ^= random << 5;
    if (delays && random % 4 == 0) pause_us(random % 1000);
    *s->mine = i;
    check(MPI_Barrier(s->comm), "barrier");
    for (int other = 0; other < s->ranks; ++other) {
      const int seen = *s->of[other];
      if (seen != i && seen != i + 1) fail("a rank left before another came", seen, i);
      if (seen == i + 1) fail("a rank came again before all had left", seen, i);
    }
    check(MPI_Barrier(s->comm), "barrier");
  }
}

static void semantics(int count) {
  shared s = share(MPI_COMM_WORLD);
  episodes(&s, 0, count, 0);
  episodes(&s, count, count / 20 + 1, 1);
  unshare(&s);
}

/* ---- communicators ---- */

static void try_comm(MPI_Comm comm) {
  shared s = share(comm);
  episodes(&s, 0, 50, 0);
  unshare(&s);
}

static void comms(int count) {
  (void)count;
  try_comm(MPI_COMM_WORLD);
  try_comm(MPI_COMM_SELF);
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &made), "dup");
  try_comm(made);
  MPI_Comm again = MPI_COMM_NULL;
  check(MPI_Comm_dup(made, &again), "dup of dup");
  try_comm(again);
  try_comm(made);
  MPI_Comm_free(&made);
  try_comm(again);
  MPI_Comm_free(&again);
  /* halves, the other way round */
  check(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &made), "split");
  try_comm(made);
  MPI_Comm_free(&made);
  /* all but the first; the first alone */
  check(MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &made), "split");
  try_comm(made);
  MPI_Comm_free(&made);
  /* a group, made by its members alone */
  MPI_Group world;
  MPI_Group some;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int last_and_first[2] = {size - 1, 0};
  MPI_Group_incl(world, size > 1 ? 2 : 1, last_and_first, &some);
  if (rank == 0 || rank == size - 1) {
    check(MPI_Comm_create_group(MPI_COMM_WORLD, some, 7, &made), "create_group");
    try_comm(made);
    MPI_Comm_free(&made);
  }
  MPI_Group_free(&some);
  MPI_Group_free(&world);
  /* an intercommunicator, and what it merges to */
  if (size > 1) {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm between = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    check(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 3, &between), "inter");
    for (int i = 0; i < 20; ++i) check(MPI_Barrier(between), "barrier of an intercommunicator");
    check(MPI_Intercomm_merge(between, rank % 2, &made), "merge");
    try_comm(made);
    MPI_Comm_free(&made);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
  }
  MPI_Comm types = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &types);
  try_comm(types);
  MPI_Comm_free(&types);
}

static long count_files(const char* path) {
  DIR* const directory = opendir(path);
  long count = 0;
  while (directory != NULL && readdir(directory) != NULL) ++count;
  if (directory != NULL) closedir(directory);
  return count;
}

static long resident_pages(void) {
  long size_pages = 0;
  long resident = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &size_pages, &resident) != 2) resident = 0;
  if (file != NULL) fclose(file);
  return resident;
}

static void make_and_free(int count) {
  for (int i = 0; i < count; ++i) {
    MPI_Comm made = MPI_COMM_NULL;
    if (i % 3 == 2) {
      check(MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? rank : -rank, &made), "split");
    } else {
      check(MPI_Comm_dup(MPI_COMM_WORLD, &made), "dup");
    }
    for (int n = 0; n < 2; ++n) check(MPI_Barrier(made), "barrier");
    MPI_Comm_free(&made);
  }
}

/* Many communicators, one after the other, leave nothing. */
static void leak(int count) {
  make_and_free(count / 10);
  const long files = count_files("/proc/self/fd");
  const long shm = count_files("/dev/shm");
  const long pages = resident_pages();
  make_and_free(count);
  MPI_Barrier(MPI_COMM_WORLD);
  if (count_files("/proc/self/fd") > files) {
    fail("descriptors leak", count_files("/proc/self/fd"), files);
  }
  if (count_files("/dev/shm") > shm) fail("/dev/shm fills", count_files("/dev/shm"), shm);
  /* The MPI's own growth is the same without us: what a leak of ours would take is far more. */
  if (resident_pages() - pages > 512 + count / 20) {
    fail("memory leaks: pages", resident_pages(), pages);
  }
}

/* Many at once, in few descriptors; and all back when freed. */
static void live(int count) {
  MPI_Comm* const made = malloc((size_t)count * sizeof *made);
  make_and_free(30);
  const long files = count_files("/proc/self/fd");
  for (int i = 0; i < count; ++i) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &made[i]), "dup");
    check(MPI_Barrier(made[i]), "barrier");
  }
  if (count_files("/proc/self/fd") > files + 16) {
    fail("descriptors of many communicators", count_files("/proc/self/fd"), files);
  }
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < count; ++i) check(MPI_Barrier(made[i]), "barrier");
  }
  for (int i = 0; i < count; ++i) MPI_Comm_free(&made[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  make_and_free(30);
  if (count_files("/proc/self/fd") > files) {
    fail("descriptors of freed communicators", count_files("/proc/self/fd"), files);
  }
  free(made);
}

/* ---- a rank that cannot: then nobody does ---- */

/* Shared memory that this process has mapped and that has no file. */
static long mapped_kib(void) {
  long kib = 0;
  char line[512];
  FILE* const maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long from = 0;
    unsigned long to = 0;
    if (strstr(line, "memfd:muster") == NULL || sscanf(line, "%lx-%lx", &from, &to) != 2) continue;
    kib += (long)((to - from) / 1024);
  }
  if (maps != NULL) fclose(maps);
  return kib;
}

/* The last rank, which leads a barrier of its own, may open no file for a while. */
static void declines(int count) {
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm others = MPI_COMM_NULL;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm between = MPI_COMM_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  int* const everybody = calloc((size_t)size, sizeof *everybody);
  MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, everybody, 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, rank, &others);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 3, &between);
  check(MPI_Barrier(between), "barrier of an intercommunicator");
  check(MPI_Barrier(reversed), "barrier");
  check(MPI_Barrier(others), "barrier of those that can");
  const int first_free = dup(0);
  close(first_free);
  struct rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const struct rlimit none = {(rlim_t)first_free, before.rlim_max};
  long kib = 0;
  for (int i = 0; i < count; ++i) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &made), "dup");
    if (rank == size - 1) setrlimit(RLIMIT_NOFILE, &none);
    check(MPI_Barrier(made), "barrier");
    check(MPI_Barrier(made), "barrier");
    setrlimit(RLIMIT_NOFILE, &before);
    if (i == 0) kib = mapped_kib();
    MPI_Comm_free(&made);
  }
  check(MPI_Comm_dup(others, &made), "dup");
  check(MPI_Barrier(made), "barrier");
  if (mapped_kib() > kib) fail("what nobody took is still there: KiB", mapped_kib(), kib);
  MPI_Comm_free(&made);
  check(MPI_Comm_dup(MPI_COMM_WORLD, &made), "dup");
  try_comm(made);
  MPI_Comm_free(&made);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
  MPI_Comm_free(&others);
  MPI_Comm_free(&reversed);
  free(everybody);
}

/* ---- several hosts: no memory to share, but, on one machine, a clock ---- */

/* The first leaves after the last has come. */
static void episodes_by_clock(MPI_Comm comm, int count) {
  long* const mine = malloc(2 * (size_t)count * sizeof *mine);
  long* const all = malloc(2 * (size_t)count * (size_t)size * sizeof *all);
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  for (int i = 0; i < count; ++i) {
    if (i % 8 == rank % 8) pause_us(300);
    mine[2 * i] = now_ns();
    check(MPI_Barrier(comm), "barrier");
    mine[2 * i + 1] = now_ns();
  }
  MPI_Allgather(mine, 2 * count, MPI_LONG, all, 2 * count, MPI_LONG, comm);
  for (int i = 0; i < count; ++i) {
    long last_in = 0;
    long first_out = all[2 * i + 1];
    for (int r = 0; r < ranks; ++r) {
      const long in = all[2 * (r * count + i)];
      const long out = all[2 * (r * count + i) + 1];
      if (in > last_in) last_in = in;
      if (out < first_out) first_out = out;
    }
    if (first_out < last_in) fail("a rank left before another came: ns", first_out, last_in);
  }
  free(mine);
  free(all);
}

static void over_hosts(int count) {
  episodes_by_clock(MPI_COMM_WORLD, count);
  MPI_Comm made = MPI_COMM_NULL;
  for (int i = 0; i < 20; ++i) {
    MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? rank : -rank, &made);
    episodes_by_clock(made, 5);
    MPI_Comm_free(&made);
  }
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &made);
  episodes_by_clock(made, 20);
  MPI_Comm_free(&made);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
  try_comm(made);
  MPI_Comm_free(&made);
  MPI_Comm_dup(MPI_COMM_WORLD, &made); /* still there at the end */
  episodes_by_clock(made, 5);
}

/* ---- threads ---- */

static void* wait_in_thread(void* argument) {
  shared* const s = argument;
  MPI_Comm made = MPI_COMM_NULL;
  episodes(s, 0, 300, 0);
  for (int i = 0; i < 10; ++i) { /* others are made and freed at the same time */
    check(MPI_Comm_dup(s->comm, &made), "dup");
    check(MPI_Barrier(made), "barrier");
    MPI_Comm_free(&made);
  }
  return NULL;
}

static void threads(int count) {
  shared shareds[8];
  pthread_t ids[8];
  MPI_Comm made[8];
  if (count > 8) count = 8;
  for (int i = 0; i < count; ++i) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &made[i]), "dup");
    shareds[i] = share(made[i]);
  }
  for (int i = 0; i < count; ++i) pthread_create(&ids[i], NULL, wait_in_thread, &shareds[i]);
  for (int i = 0; i < count; ++i) pthread_join(ids[i], NULL);
  for (int i = 0; i < count; ++i) {
    unshare(&shareds[i]);
    MPI_Comm_free(&made[i]);
  }
}

/* ---- progress: the sender is in the barrier while its message is not yet delivered ---- */

static void progress(int megabytes) {
  const int bytes = megabytes << 20;
  char* const data = malloc((size_t)bytes);
  const int peer = rank ^ 1;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 3; ++i) {
    if (peer < size && rank % 2 == 0) {
      memset(data, i + 1, (size_t)bytes);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(data, bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, &request);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (peer < size) {
      pause_us(20000);
      MPI_Recv(data, bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (data[0] != i + 1 || data[bytes - 1] != i + 1) fail("message", data[bytes - 1], i + 1);
      MPI_Barrier(MPI_COMM_WORLD);
    } else {
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  free(data);
}

/* ---- processes that come, and that go ---- */

static void spawn(int number) {
  (void)number;
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parent);
  MPI_Comm between = parent;
  if (parent == MPI_COMM_NULL) {
    char* arguments[] = {"spawn", NULL};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between,
                       MPI_ERRCODES_IGNORE) != MPI_SUCCESS) {
      // Every rank says so: the first to leave may take the others down before they do.
      puts("skipped: this MPI's MPI_Comm_spawn fails, without Muster too");
      fflush(stdout);
      _exit(0);
    }
  }
  MPI_Comm all = MPI_COMM_NULL;
  check(MPI_Intercomm_merge(between, parent != MPI_COMM_NULL, &all), "merge");
  for (int i = 0; i < 100; ++i) {
    check(MPI_Barrier(all), "barrier of parents and children");
    check(MPI_Barrier(between), "barrier between parents and children");
    check(MPI_Barrier(MPI_COMM_WORLD), "barrier");
  }
  MPI_Comm_free(&all);
  int own = (int)getpid();
  int others[16] = {0}; /* the children's at the parents, the parents' at the children */
  MPI_Allgather(&own, 1, MPI_INT, others, 1, MPI_INT, between);
  MPI_Comm_disconnect(&between);
  if (parent != MPI_COMM_NULL) return;
  for (int i = 0; i < 2; ++i) { /* until they have ended, and want no CPU any more */
    for (int turn = 0; turn < 2000 && kill(others[i], 0) == 0; ++turn) pause_us(10000);
  }
  check(MPI_Comm_dup(MPI_COMM_WORLD, &all), "dup");
  try_comm(all);
  MPI_Comm_free(&all);
}

static void live_at_the_end(int count) {
  for (int i = 0; i < count; ++i) {
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Barrier(made);
    MPI_Comm_split(made, rank % 2, rank, &made);
    MPI_Barrier(made);
  }
}

/* What the MPI's own barrier answers, where something of it is called under this name. */
static int answer = MPI_SUCCESS;

int PMPI_Barrier(MPI_Comm comm) {
  int (*real)(MPI_Comm) = NULL;
  void* const symbol = dlsym(RTLD_NEXT, "PMPI_Barrier");
  memcpy(&real, &symbol, sizeof symbol);
  return answer == MPI_SUCCESS ? real(comm) : answer;
}

/* The last rank is killed, or the leaders of several hosts do not come together. All who live are
 * told, by an error handler that returns. */
static void survive(int leaders_fail) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  int status = MPI_SUCCESS;
  MPI_Comm_create_errhandler(count_errors, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  for (int i = 0; status == MPI_SUCCESS && handled == 0; ++i) {
    status = MPI_Barrier(MPI_COMM_WORLD);
    if (i == 100 && leaders_fail) answer = MPI_ERR_OTHER;
    if (i == 100 && !leaders_fail && rank == size - 1) raise(SIGKILL);
  }
  if (status == MPI_SUCCESS || handled != 1) fail("status, calls of the handler", status, handled);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS) fail("it cannot be over", 0, 0);
  answer = MPI_SUCCESS;
  if (leaders_fail) return;
  if (rank == 0) puts("passed");
  fflush(stdout);
  pause_us(500000); /* for the others: who leaves takes them down */
  _exit(0);
}

static void die(int how) {
  for (int i = 0;; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (i == 1000 && rank == size - 1) {
      if (how == 0) raise(SIGKILL);
      if (how == 1) MPI_Abort(MPI_COMM_WORLD, 5);
      _exit(6);
    }
  }
}

typedef struct test_case {
  const char* name;
  void (*run)(int number);
} test_case;

static const test_case cases[] = {{"semantics", semantics},
                                  {"tolerant", semantics},
                                  {"comms", comms},
                                  {"leak", leak},
                                  {"live", live},
                                  {"hosts", over_hosts},
                                  {"threads", threads},
                                  {"progress", progress},
                                  {"spawn", spawn},
                                  {"finalize", live_at_the_end},
                                  {"die", die},
                                  {"survive", survive},
                                  {"declines", declines},
                                  {NULL, NULL}};

/* Open MPI 5 has a variable of this name, which says whether ranks go on after failures. */
extern _Bool ompi_ftmpi_enabled;
_Bool ompi_ftmpi_enabled;

int main(int argc, char** argv) {
  program = argv[0];
  const char* const which = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  ompi_ftmpi_enabled = strcmp(which, "tolerant") == 0;
  int provided = MPI_THREAD_SINGLE;
  if (strcmp(which, "threads") == 0) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) {
      puts("skipped: this MPI has no MPI_THREAD_MULTIPLE");
      MPI_Finalize();
      return 77;
    }
  } else {
    MPI_Init(&argc, &argv);
  }
  if (strcmp(which, "tolerant") == 0 && !ompi_ftmpi_enabled) { /* MPI_Init has set it */
    puts("skipped: this MPI can tolerate faults itself: mpi.ulfm");
    MPI_Finalize();
    return 77;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const test_case* found = cases;
  while (found->name != NULL && strcmp(which, found->name) != 0) ++found;
  if (found->name == NULL) fail("no such case", 0, 0);
  found->run(number);
  if (rank == 0 && strcmp(which, "finalize") != 0) MPI_Barrier(MPI_COMM_SELF);
  MPI_Finalize();
  if (rank == 0) puts("passed");
  return 0;
}
