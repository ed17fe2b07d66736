/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings from the environment, the C library's own functions, and what fork changes. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "run/escape.h"
#include "run/preload.h"

run_libc theirs;
run_settings settings;

static enum run_mutex mutex_named(const char* name) {
  static const struct {
    const char* name;
    enum run_mutex mutex;
  } all[] = {{"pthread", RUN_MUTEX_PTHREAD},
             {"spin-then-park", RUN_MUTEX_SPIN_THEN_PARK},
             {"mcs", RUN_MUTEX_MCS},
             {"cna", RUN_MUTEX_CNA}};
  if (name == NULL) return RUN_MUTEX_THEIRS;
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    if (strcmp(name, all[i].name) == 0) return all[i].mutex;
  }
  return RUN_MUTEX_THEIRS; /* the launcher lets no other name through */
}

/* The default version of each, the one that a program built today would call. */
static void find_theirs(void) {
  const struct {
    void* where;
    const char* name;
  } all[] = {{&theirs.register_atfork, "__register_atfork"},
             {&theirs.create, "pthread_create"},
             {&theirs.create_c11, "thrd_create"},
             {&theirs.mutex_init, "pthread_mutex_init"},
             {&theirs.mutex_destroy, "pthread_mutex_destroy"},
             {&theirs.mutex_lock, "pthread_mutex_lock"},
             {&theirs.mutex_trylock, "pthread_mutex_trylock"},
             {&theirs.mutex_timedlock, "pthread_mutex_timedlock"},
             {&theirs.mutex_clocklock, "pthread_mutex_clocklock"},
             {&theirs.mutex_unlock, "pthread_mutex_unlock"},
             {&theirs.cond_wait, "pthread_cond_wait"},
             {&theirs.cond_timedwait, "pthread_cond_timedwait"},
             {&theirs.cond_clockwait, "pthread_cond_clockwait"},
             {&theirs.cond_signal, "pthread_cond_signal"},
             {&theirs.cond_broadcast, "pthread_cond_broadcast"},
             {&theirs.execve, "execve"},
             {&theirs.execvpe, "execvpe"},
             {&theirs.fexecve, "fexecve"},
             {&theirs.spawn, "posix_spawn"},
             {&theirs.spawnp, "posix_spawnp"},
             {&theirs.system, "system"},
             {&theirs.popen, "popen"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    void* const found = dlsym(RTLD_NEXT, all[i].name);
    memcpy(all[i].where, &found, sizeof found); /* a function's address, as POSIX has it */
  }
}

static unsigned number_in(const char* name) {
  const char* const text = secure_getenv(name);
  return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static unsigned usable_cpus(void) {
  unsigned char mask[1024]; /* 8192 CPUs */
  cpu_set_t* const set = (cpu_set_t*)mask;
  const unsigned granted = number_in("MUSTER_RUN_CPUS"); /* by the control groups */
  if (sched_getaffinity(0, sizeof mask, set) != 0) return granted > 0 ? granted : 1;
  const unsigned allowed = (unsigned)CPU_COUNT_S(sizeof mask, set);
  return granted > 0 && granted < allowed ? granted : allowed;
}

static void after_fork_in_child(void) {
  run_conditions_after_fork();
  run_threads_after_fork();
}

/* For the report at the end: programs that set their title write over their environment. */
static char mutex_name[32];
static char barrier_name[256];
static char json_file[PATH_MAX];

/* Null if it is not set, or does not fit. */
static const char* copy_of(const char* variable, char* into, size_t size) {
  const char* const value = secure_getenv(variable);
  if (value == NULL || strlen(value) >= size) return NULL;
  return strcpy(into, value);
}

/* Its threads and mutexes are not ours to touch, and it sees nothing of what we do. */
static bool has_sanitizer(void) {
  static const char* const signs[] = {"__asan_init", "__hwasan_init", "__lsan_init", "__msan_init",
                                      "__tsan_init"};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; ++i) {
    if (dlsym(RTLD_DEFAULT, signs[i]) != NULL) return true;
  }
  return false;
}

void run_start(void) {
  static atomic_flag found = ATOMIC_FLAG_INIT;
  static atomic_flag begun = ATOMIC_FLAG_INIT;
  if (!atomic_flag_test_and_set(&found)) {
    find_theirs();
    /* Before anybody else's (entry.c): theirs may make threads and lock mutexes. Nothing is held
     * across a fork: they may wait for threads that end, or make others. */
    pthread_atfork(NULL, NULL, after_fork_in_child);
  }
  /* A program may call us before the C library has its environment (.preinit_array). */
  if (environ == NULL || atomic_flag_test_and_set(&begun)) return;
  settings.mutex = RUN_MUTEX_THEIRS;
  settings.cpus = usable_cpus();
  if (has_sanitizer()) {
    dprintf(STDERR_FILENO, "muster run: ");
    print_escaped(STDERR_FILENO, program_invocation_short_name, "x");
    dprintf(STDERR_FILENO, " has a sanitizer and is left alone\n");
    run_threads_start();
    return;
  }
  settings.mutex_name = copy_of("MUSTER_RUN_MUTEX", mutex_name, sizeof mutex_name);
  settings.barrier = copy_of("MUSTER_RUN_BARRIER", barrier_name, sizeof barrier_name);
  settings.cores = secure_getenv("MUSTER_RUN_CORES");
  settings.binds_main = number_in("MUSTER_RUN_MAIN") != 0;
  settings.reports = number_in("MUSTER_RUN_REPORT") != 0;
  settings.json = copy_of("MUSTER_RUN_JSON", json_file, sizeof json_file);
  settings.launcher = number_in("MUSTER_RUN_PID");
  settings.mutex = mutex_named(settings.mutex_name);
  run_note_stderr();
  run_threads_start();
}

__attribute__((constructor)) static void loaded(void) { run_start(); }
__attribute__((destructor)) static void ended(void) { run_report(); }
