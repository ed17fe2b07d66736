/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of libmuster_run.so know of each other. It is loaded by LD_PRELOAD into other
 * people's programs, by `muster run`: doc/run.md. The parts:
 *
 *   start.c       settings from the environment, the C library's own functions, what fork changes
 *   threads.cpp   a record for each thread; new threads placed and bound
 *   mutex.cpp     the algorithms of src/lock/parking*.hpp inside of pthread_mutex_t
 *   condition.c   condition variables for mutexes that are no longer the C library's
 *   report.c      what happened, at the end
 *   entry.c       the names that the program calls
 *
 * Nothing here allocates memory, throws, or changes errno. The launcher has decided everything that
 * needs a topology: here are only lists to follow.
 */
#pragma once

#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- start.c ---- */

/* The C library's own. */
typedef struct run_libc {
  int (*register_atfork)(void (*)(void), void (*)(void), void (*)(void), void*);
  int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  int (*create_c11)(thrd_t*, thrd_start_t, void*);
  int (*mutex_init)(pthread_mutex_t*, const pthread_mutexattr_t*);
  int (*mutex_destroy)(pthread_mutex_t*);
  int (*mutex_lock)(pthread_mutex_t*);
  int (*mutex_trylock)(pthread_mutex_t*);
  int (*mutex_timedlock)(pthread_mutex_t*, const struct timespec*);
  int (*mutex_clocklock)(pthread_mutex_t*, clockid_t, const struct timespec*);
  int (*mutex_unlock)(pthread_mutex_t*);
  int (*cond_wait)(pthread_cond_t*, pthread_mutex_t*);
  int (*cond_timedwait)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
  int (*cond_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  int (*cond_signal)(pthread_cond_t*);
  int (*cond_broadcast)(pthread_cond_t*);
  int (*execve)(const char*, char* const[], char* const[]);
  int (*execvpe)(const char*, char* const[], char* const[]);
  int (*fexecve)(int, char* const[], char* const[]);
  int (*spawn)(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
               char* const[], char* const[]);
  int (*spawnp)(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                char* const[], char* const[]);
  int (*system)(const char*);
  FILE* (*popen)(const char*, const char*);
} run_libc;

enum run_mutex {
  RUN_MUTEX_UNKNOWN, /* not started */
  RUN_MUTEX_THEIRS,  /* left alone */
  RUN_MUTEX_PTHREAD, /* left alone and counted */
  RUN_MUTEX_SPIN_THEN_PARK,
  RUN_MUTEX_MCS,
  RUN_MUTEX_CNA
};

typedef struct run_settings {
  enum run_mutex mutex;
  const char* mutex_name;
  const char* cores;   /* "0,8;1,9": PUs of the cores for threads, the best first; NULL: none */
  bool binds_main;     /* the main thread is a working thread */
  bool reports;        /* on standard error */
  const char* json;    /* a line for each process is appended to this file */
  unsigned cpus;       /* that the process may use */
  const char* barrier; /* the algorithm of OpenMP's; NULL: barriers are left alone */
  long launcher;       /* the process that the launcher became */
} run_settings;

extern run_libc theirs;
extern run_settings settings;

/* Before anything else; whoever comes first. Again has no effect. */
void run_start(void);

/* ---- threads.cpp ---- */

enum run_count {
  RUN_LOCKS,      /* taken, by whatever algorithm */
  RUN_WAITED,     /* of those, not at once */
  RUN_SLEPT,      /* how often somebody slept for one */
  RUN_WAITS,      /* for conditions */
  RUN_PASSED_ON,  /* locks of kinds that are the C library's */
  RUN_CREATED,    /* threads */
  RUN_LEFT_ALONE, /* of these, not bound: their creator had chosen, or no core was allowed */
  RUN_COUNTS
};

void run_threads_start(void);
void run_threads_after_fork(void); /* in the child */
int run_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
               void* argument);
int run_create_c11(thrd_t* thread, thrd_start_t start, void* argument);
/* Until it is told -1, threads that the caller makes are no workers. */
void run_own_threads(int more);
/* A server of libmuster's comes to the core with this PU, or leaves it. */
void run_servers(unsigned pu, int more);
void run_count_one(enum run_count what);
uint64_t run_total(enum run_count what);
unsigned run_most_threads(void);
/* Cores for threads: how many, and how many threads were placed on each so far. */
unsigned run_cores(void);
uint64_t run_placed_on(unsigned core);
/* As in the settings: "0,8". */
void run_print_pus(int file, unsigned core);

/* A thread that was bound gets back what it would have had; whether it did. So that a program it
 * starts is not confined to its core. */
bool run_widen(void);
void run_narrow(void);

/* ---- mutex.cpp ---- */

/* What a deadline may be; all else is EINVAL. */
static inline bool run_is_time(const struct timespec* time) {
  return time->tv_nsec >= 0 && time->tv_nsec < 1000000000;
}
static inline bool run_is_clock(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/* Whether its state is ours. */
bool run_is_ours(const pthread_mutex_t* mutex);
int run_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes);
int run_mutex_destroy(pthread_mutex_t* mutex);
int run_mutex_lock(pthread_mutex_t* mutex);
int run_mutex_trylock(pthread_mutex_t* mutex);
int run_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until);
int run_mutex_timedlock(pthread_mutex_t* mutex, const struct timespec* until);
int run_mutex_unlock(pthread_mutex_t* mutex);

/* ---- condition.c ---- */

int run_cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex);
int run_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex, const struct timespec* until);
int run_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                       const struct timespec* until);
int run_cond_signal(pthread_cond_t* cond);
int run_cond_broadcast(pthread_cond_t* cond);
void run_conditions_after_fork(void);

/* ---- libmuster_barriers.so, where it is preloaded: barrier.hpp ---- */

#pragma GCC visibility push(default)
/* Started, if need be. */
const run_settings* muster_preload_settings(void);
uint64_t muster_preload_barriers(void); /* waits at them, ours and others */
void muster_preload_print_barriers(int file, bool as_json);
#pragma GCC visibility pop

/* ---- report.c ---- */

void run_note_stderr(void); /* which it is when the program starts */
void run_report(void);

#ifdef __cplusplus
}
#endif
