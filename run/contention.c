/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libmuster_contention.so, which `muster run --report` preloads: for which mutexes threads wait,
 * how long, and from where. The mutexes stay the C library's. At the end of each process a line of
 * JSON is appended to the file that MUSTER_RUN_JSON names.
 *
 * What is noted of a mutex is written by whoever holds it. Nothing here allocates memory.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "run/report.h"

#define EXPORTED __attribute__((visibility("default")))

enum {
  mutexes_max = 1 << 15, /* that are noted; more are counted */
  probes_max = 32,
  callers_max = 8,  /* of each mutex; more are one */
  told_max = 24,    /* mutexes in the report, those that were waited for longest */
  soon_ns = 100000, /* longer than any data's way, and than what one section should take */
};

/* One thread at a time writes it; the report may read it meanwhile. */
typedef _Atomic uint64_t counter;
static uint64_t value_of(const counter* of) {
  return atomic_load_explicit((counter*)of, memory_order_relaxed);
}
static void add(counter* to, uint64_t more) {
  atomic_store_explicit(to, value_of(to) + more, memory_order_relaxed);
}

typedef struct sums {
  counter locks;
  counter waited; /* of these, not at once */
  counter waited_ns;
  counter held_ns;
} sums;

typedef struct caller {
  void* _Atomic where; /* the last one is whoever else */
  sums its;
} caller;

typedef struct noted {
  pthread_mutex_t* _Atomic mutex;
  atomic_uint waiting;
  atomic_uint most_waiting;
  counter threads; /* a bit for the number of each, modulo 64 */
  counter conditions;
  counter stayed; /* sections of whoever had the mutex before, which ended soon: data was there */
  counter stayed_ns;
  counter moved; /* of anybody else */
  counter moved_ns;
  counter first_ns; /* it was taken, and last given */
  counter last_ns;
  caller callers[callers_max + 1];
  uint64_t since_ns; /* held by who came from there */
  caller* from;
  unsigned depth;
  unsigned owner; /* the number of who had it last */
  bool stays;
} noted;

static noted all[mutexes_max];
static atomic_ullong not_noted; /* locks of mutexes for which there was no room */
static atomic_uint threads;
static uint64_t begun_ns;
static char file_name[PATH_MAX];

static struct {
  int (*lock)(pthread_mutex_t*);
  int (*trylock)(pthread_mutex_t*);
  int (*timedlock)(pthread_mutex_t*, const struct timespec*);
  int (*clocklock)(pthread_mutex_t*, clockid_t, const struct timespec*);
  int (*unlock)(pthread_mutex_t*);
  int (*wait)(pthread_cond_t*, pthread_mutex_t*);
  int (*timedwait)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
  int (*clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
} theirs;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* ---- starting ---- */

static void forget(void) { /* in a fork's child, which has one thread */
  for (noted* at = all; at < all + mutexes_max; ++at) {
    if (atomic_load_explicit(&at->mutex, memory_order_relaxed) == NULL) continue;
    const noted held = {.mutex = at->mutex, .since_ns = now_ns(), .depth = at->depth};
    const long from = at->from != NULL ? at->from - at->callers : 0;
    memcpy(at, &held, sizeof held);
    at->from = &at->callers[from];
  }
  atomic_store(&not_noted, 0);
  atomic_store(&threads, 1);
  begun_ns = now_ns();
}

/* A program's other libraries may lock before our constructor runs. */
static void start(void) {
  static atomic_bool started;
  if (atomic_load_explicit(&started, memory_order_acquire)) return;
  const struct {
    void* where;
    const char* name;
  } functions[] = {{&theirs.lock, "pthread_mutex_lock"},
                   {&theirs.trylock, "pthread_mutex_trylock"},
                   {&theirs.timedlock, "pthread_mutex_timedlock"},
                   {&theirs.clocklock, "pthread_mutex_clocklock"},
                   {&theirs.unlock, "pthread_mutex_unlock"},
                   {&theirs.wait, "pthread_cond_wait"},
                   {&theirs.timedwait, "pthread_cond_timedwait"},
                   {&theirs.clockwait, "pthread_cond_clockwait"}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    void* const found = dlsym(RTLD_NEXT, functions[i].name);
    memcpy(functions[i].where, &found, sizeof found);
  }
  if (atomic_exchange(&started, true)) return;
  begun_ns = now_ns();
  pthread_atfork(NULL, NULL, forget);
}

__attribute__((constructor)) static void begin(void) {
  start();
  note_stderr();
  /* Programs that set their title write over their environment. */
  const char* const name = secure_getenv("MUSTER_RUN_JSON");
  if (name != NULL && strlen(name) < sizeof file_name) strcpy(file_name, name);
}

/* ---- noting ---- */

static unsigned own_number(void) {
  static _Thread_local unsigned number;
  if (number == 0) number = atomic_fetch_add(&threads, 1) + 1;
  return number;
}

/* NULL if it is not noted and, unless `comes`, need not be. */
static noted* find(pthread_mutex_t* mutex, bool comes) {
  const uint64_t bits = (uintptr_t)mutex * UINT64_C(0x9e3779b97f4a7c15);
  for (unsigned probe = 0; probe < probes_max; ++probe) {
    noted* const at = &all[((bits >> 40) + probe) % mutexes_max];
    pthread_mutex_t* its = atomic_load_explicit(&at->mutex, memory_order_relaxed);
    if (its == mutex) return at;
    if (its != NULL) continue;
    if (!comes) return NULL;
    if (atomic_compare_exchange_strong(&at->mutex, &its, mutex) || its == mutex) return at;
  }
  if (comes) atomic_fetch_add(&not_noted, 1);
  return NULL;
}

static caller* caller_of(noted* at, void* where) {
  for (unsigned i = 0; i < callers_max; ++i) {
    void* const its = atomic_load_explicit(&at->callers[i].where, memory_order_relaxed);
    if (its == where) return &at->callers[i];
    if (its != NULL) continue;
    atomic_store_explicit(&at->callers[i].where, where, memory_order_relaxed);
    return &at->callers[i];
  }
  return &at->callers[callers_max];
}

static bool is_held(int status) { return status == 0 || status == EOWNERDEAD; }

/* By who has got it now. */
static void note(noted* at, void* where, bool waited, uint64_t waited_ns) {
  caller* const from = caller_of(at, where);
  add(&from->its.locks, 1);
  if (waited) {
    add(&from->its.waited, 1);
    add(&from->its.waited_ns, waited_ns);
  }
  const unsigned number = own_number();
  const uint64_t bit = UINT64_C(1) << (number % 64);
  if ((value_of(&at->threads) & bit) == 0) add(&at->threads, bit);
  if (at->depth++ > 0) return;
  at->from = from;
  at->stays = at->owner == number;
  at->owner = number;
  at->since_ns = now_ns();
  if (value_of(&at->first_ns) == 0) add(&at->first_ns, at->since_ns);
}

/* By who is about to give it. */
static void note_end(noted* at) {
  if (at == NULL || at->depth == 0 || --at->depth > 0) return;
  const uint64_t now = now_ns();
  const uint64_t its = now - at->since_ns;
  add(&at->from->its.held_ns, its);
  atomic_store_explicit(&at->last_ns, now, memory_order_relaxed);
  if (its > soon_ns) return;
  add(at->stays ? &at->stayed : &at->moved, 1);
  add(at->stays ? &at->stayed_ns : &at->moved_ns, its);
}

/* The lock, by whatever function of theirs waits. */
#define LOCK(mutex, waits)                                                                       \
  start();                                                                                       \
  noted* const at = find(mutex, true);                                                           \
  if (at == NULL) return waits;                                                                  \
  int status = theirs.trylock(mutex);                                                            \
  const bool waited = status == EBUSY;                                                           \
  uint64_t waited_ns = 0;                                                                        \
  if (waited) {                                                                                  \
    waited_ns = now_ns();                                                                        \
    const unsigned waiting = atomic_fetch_add(&at->waiting, 1) + 1;                              \
    unsigned most = atomic_load(&at->most_waiting);                                              \
    while (waiting > most && !atomic_compare_exchange_weak(&at->most_waiting, &most, waiting)) { \
    }                                                                                            \
    status = waits;                                                                              \
    atomic_fetch_sub(&at->waiting, 1);                                                           \
    waited_ns = now_ns() - waited_ns;                                                            \
  }                                                                                              \
  if (is_held(status)) note(at, __builtin_return_address(0), waited, waited_ns);                 \
  return status

EXPORTED int pthread_mutex_lock(pthread_mutex_t* mutex) { LOCK(mutex, theirs.lock(mutex)); }
EXPORTED int pthread_mutex_timedlock(pthread_mutex_t* mutex, const struct timespec* until) {
  LOCK(mutex, theirs.timedlock(mutex, until));
}
EXPORTED int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                     const struct timespec* until) {
  LOCK(mutex, theirs.clocklock(mutex, clock, until));
}
EXPORTED int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  start();
  const int status = theirs.trylock(mutex);
  noted* const at = is_held(status) ? find(mutex, true) : NULL;
  if (at != NULL) note(at, __builtin_return_address(0), false, 0);
  return status;
}
EXPORTED int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  start();
  note_end(find(mutex, false));
  return theirs.unlock(mutex);
}

/* Who waits for a condition does not hold the mutex; how long it then waits for that is not known
 * apart. */
#define WAIT(mutex, waits)                                 \
  start();                                                 \
  noted* const at = find(mutex, false);                    \
  const bool was_held = at != NULL && at->depth == 1;      \
  if (was_held) {                                          \
    add(&at->conditions, 1);                               \
    note_end(at);                                          \
  }                                                        \
  const int status = waits;                                \
  if (was_held) {                                          \
    at->depth = 1;                                         \
    at->from = caller_of(at, __builtin_return_address(0)); \
    at->since_ns = now_ns();                               \
  }                                                        \
  return status

EXPORTED int pthread_cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex) {
  WAIT(mutex, theirs.wait(cond, mutex));
}
EXPORTED int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex,
                                    const struct timespec* until) {
  WAIT(mutex, theirs.timedwait(cond, mutex, until));
}
EXPORTED int pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                                    const struct timespec* until) {
  WAIT(mutex, theirs.clockwait(cond, mutex, clock, until));
}

/* ---- telling ---- */

/* "function+0x1f (file)", "file+0x1234", as far as it is known. */
static void print_place(int file, const void* address, bool is_function) {
  Dl_info its;
  if (address == NULL) {
    dprintf(file, "others");
  } else if (dladdr((const char*)address - (is_function ? 1 : 0), &its) == 0) {
    dprintf(file, is_function ? "%p" : "on the heap or a stack, %p", address);
  } else {
    const char* const slash = strrchr(its.dli_fname, '/');
    const char* const object = slash != NULL ? slash + 1 : its.dli_fname;
    const void* const base = its.dli_sname != NULL ? its.dli_saddr : its.dli_fbase;
    print_escaped(file, its.dli_sname != NULL ? its.dli_sname : object, "u00");
    if (address != base) {
      dprintf(file, "+%#zx", (size_t)((const char*)address - (const char*)base));
    }
    if (its.dli_sname == NULL) return;
    dprintf(file, " (");
    print_escaped(file, object, "u00");
    dprintf(file, ")");
  }
}

static void print_sums(int file, const sums* its) {
  dprintf(file,
          "\"locks\": %" PRIu64 ", \"waited\": %" PRIu64 ", \"waited_ns\": %" PRIu64
          ", \"held_ns\": %" PRIu64,
          value_of(&its->locks), value_of(&its->waited), value_of(&its->waited_ns),
          value_of(&its->held_ns));
}

static void add_up(sums* to, const sums* more) {
  add(&to->locks, value_of(&more->locks));
  add(&to->waited, value_of(&more->waited));
  add(&to->waited_ns, value_of(&more->waited_ns));
  add(&to->held_ns, value_of(&more->held_ns));
}

static sums sums_of(const noted* at) {
  sums its = {0};
  for (unsigned i = 0; i <= callers_max; ++i) add_up(&its, &at->callers[i].its);
  return its;
}

static void print_mutex(int file, const noted* at, const sums* its) {
  dprintf(file, "{\"mutex\": \"");
  print_place(file, atomic_load((void* _Atomic*)&at->mutex), false);
  dprintf(file, "\", ");
  print_sums(file, its);
  dprintf(file,
          ", \"threads\": %d, \"most_waiting\": %u, \"conditions\": %" PRIu64
          ", \"span_ns\": %" PRIu64 ", \"stayed\": %" PRIu64 ", \"stayed_ns\": %" PRIu64
          ", \"moved\": %" PRIu64 ", \"moved_ns\": %" PRIu64 ", \"callers\": [",
          __builtin_popcountll(value_of(&at->threads)), atomic_load(&((noted*)at)->most_waiting),
          value_of(&at->conditions), value_of(&at->last_ns) - value_of(&at->first_ns),
          value_of(&at->stayed), value_of(&at->stayed_ns), value_of(&at->moved),
          value_of(&at->moved_ns));
  bool some = false;
  for (unsigned i = 0; i <= callers_max; ++i) {
    if (value_of(&at->callers[i].its.locks) == 0) continue;
    dprintf(file, some ? ", {\"where\": \"" : "{\"where\": \"");
    print_place(file, atomic_load((void* _Atomic*)&at->callers[i].where), true);
    dprintf(file, "\", ");
    print_sums(file, &at->callers[i].its);
    dprintf(file, "}");
    some = true;
  }
  dprintf(file, "]}");
}

static bool print(int file) {
  static struct {
    const noted* which;
    sums its;
  } told[told_max];
  unsigned count = 0;
  unsigned mutexes = 0;
  sums whole = {0};
  for (const noted* at = all; at < all + mutexes_max; ++at) {
    if (atomic_load((void* _Atomic*)&at->mutex) == NULL) continue;
    const sums its = sums_of(at);
    if (value_of(&its.locks) == 0) continue;
    ++mutexes;
    add_up(&whole, &its);
    if (value_of(&its.waited) == 0) continue;
    unsigned place = count < told_max ? count++ : told_max - 1;
    if (place == told_max - 1 && told[place].which != NULL &&
        value_of(&told[place].its.waited_ns) >= value_of(&its.waited_ns)) {
      continue;
    }
    for (; place > 0 && value_of(&told[place - 1].its.waited_ns) < value_of(&its.waited_ns);
         --place) {
      told[place] = told[place - 1];
    }
    told[place].which = at;
    told[place].its = its;
  }
  dprintf(file, "{\"schema\": 1, \"program\": \"");
  print_escaped(file, program_invocation_short_name, "u00");
  dprintf(file, "\", \"process\": %ld, \"elapsed_ns\": %" PRIu64 ", \"threads\": %u, ",
          (long)getpid(), now_ns() - begun_ns, atomic_load(&threads));
  print_sums(file, &whole);
  dprintf(file, ", \"mutexes\": %u, \"not_noted\": %llu, \"contended\": [", mutexes,
          atomic_load(&not_noted));
  for (unsigned i = 0; i < count; ++i) {
    if (i > 0) dprintf(file, ", ");
    print_mutex(file, told[i].which, &told[i].its);
  }
  return dprintf(file, "]}\n") > 0;
}

__attribute__((destructor)) static void report(void) {
  /* Not made anew for a process that outlives the launcher, which has removed it. */
  if (file_name[0] != '\0') append_report(file_name, 0, print);
}
