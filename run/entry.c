/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names that a program calls. Those that moved into libc.so in glibc 2.34 have two versions
 * each there, and here: whoever asks for one with its version finds it, too. All others have none
 * here, and so serve whatever version is asked for.
 */
#include <alloca.h>
#include <stdarg.h>
#include <string.h>

#include "run/preload.h"

#define EXPORTED __attribute__((visibility("default")))
#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#else
#define BASE "GLIBC_2.17"
#endif
/* `own` is the program's `name`, in both versions. */
#define VERSIONS(own, name, before)                   \
  __asm__(".symver " #own ", " #name "@@GLIBC_2.34"); \
  __asm__(".symver " #own "_before, " #name "@" before);

static inline void started(void) {
  if (__builtin_expect(settings.mutex == RUN_MUTEX_UNKNOWN, 0)) run_start();
}

/* What pthread_atfork() calls, which each library has of its own. */
EXPORTED int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                               void* library);
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void* library) {
  started();
  return theirs.register_atfork(prepare, parent, child, library);
}

/* ---- threads ---- */

VERSIONS(muster_run_create, pthread_create, BASE)
#define CREATE(name)                                                                            \
  EXPORTED int name(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), \
                    void* argument);                                                            \
  int name(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),          \
           void* argument) {                                                                    \
    started();                                                                                  \
    return run_create(thread, attributes, start, argument);                                     \
  }
CREATE(muster_run_create)
CREATE(muster_run_create_before)

/* The C library's own calls no pthread_create that could be seen from outside. */
VERSIONS(muster_run_create_c11, thrd_create, "GLIBC_2.28")
#define CREATE_C11(name)                                                 \
  EXPORTED int name(thrd_t* thread, thrd_start_t start, void* argument); \
  int name(thrd_t* thread, thrd_start_t start, void* argument) {         \
    started();                                                           \
    return run_create_c11(thread, start, argument);                      \
  }
CREATE_C11(muster_run_create_c11)
CREATE_C11(muster_run_create_c11_before)

/* Called by libmuster: src/machine/preload.hpp. */
EXPORTED void muster_preload_own_threads(int more);
void muster_preload_own_threads(int more) {
  started();
  run_own_threads(more);
}
EXPORTED void muster_preload_servers(unsigned pu, int more);
void muster_preload_servers(unsigned pu, int more) {
  started();
  run_servers(pu, more);
}
/* Called by libmuster_barriers.so. */
EXPORTED const run_settings* muster_preload_settings(void) {
  started();
  return &settings;
}

/* ---- mutexes ---- */

/* The second names are from before POSIX; some old libraries call them. */
#define ON_MUTEX(name, second, does)           \
  EXPORTED int name(pthread_mutex_t* mutex) {  \
    started();                                 \
    return does(mutex);                        \
  }                                            \
  EXPORTED int second(pthread_mutex_t* mutex); \
  int second(pthread_mutex_t* mutex) {         \
    started();                                 \
    return does(mutex);                        \
  }
ON_MUTEX(pthread_mutex_destroy, __pthread_mutex_destroy, run_mutex_destroy)

/* The two that a program calls all the time find out off their way whether we have started. */
#define ON_MUTEX_OFTEN(name, second, does)                 \
  EXPORTED int name(pthread_mutex_t* mutex);               \
  int name(pthread_mutex_t* mutex) { return does(mutex); } \
  EXPORTED int second(pthread_mutex_t* mutex);             \
  int second(pthread_mutex_t* mutex) { return does(mutex); }
ON_MUTEX_OFTEN(pthread_mutex_lock, __pthread_mutex_lock, run_mutex_lock)
ON_MUTEX_OFTEN(pthread_mutex_unlock, __pthread_mutex_unlock, run_mutex_unlock)

EXPORTED int muster_run_trylock(pthread_mutex_t* mutex);
ON_MUTEX(muster_run_trylock, __pthread_mutex_trylock, run_mutex_trylock)
EXPORTED int muster_run_trylock_before(pthread_mutex_t* mutex);
int muster_run_trylock_before(pthread_mutex_t* mutex) { return muster_run_trylock(mutex); }
VERSIONS(muster_run_trylock, pthread_mutex_trylock, BASE)

EXPORTED int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
  started();
  return run_mutex_init(mutex, attributes);
}
EXPORTED int __pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes);
int __pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
  return pthread_mutex_init(mutex, attributes);
}

#define TIMEDLOCK(name)                                                    \
  EXPORTED int name(pthread_mutex_t* mutex, const struct timespec* until); \
  int name(pthread_mutex_t* mutex, const struct timespec* until) {         \
    started();                                                             \
    return run_mutex_timedlock(mutex, until);                              \
  }
TIMEDLOCK(muster_run_timedlock)
TIMEDLOCK(muster_run_timedlock_before)
VERSIONS(muster_run_timedlock, pthread_mutex_timedlock, BASE)

#define CLOCKLOCK(name)                                                                     \
  EXPORTED int name(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until); \
  int name(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {         \
    started();                                                                              \
    return run_mutex_clocklock(mutex, clock, until);                                        \
  }
CLOCKLOCK(muster_run_clocklock)
CLOCKLOCK(muster_run_clocklock_before)
VERSIONS(muster_run_clocklock, pthread_mutex_clocklock, "GLIBC_2.30")

/* ---- conditions ---- */

EXPORTED int pthread_cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex) {
  started();
  return run_cond_wait(cond, mutex);
}
EXPORTED int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex,
                                    const struct timespec* until) {
  started();
  return run_cond_timedwait(cond, mutex, until);
}
#define CLOCKWAIT(name)                                                            \
  EXPORTED int name(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock, \
                    const struct timespec* until);                                 \
  int name(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,          \
           const struct timespec* until) {                                         \
    started();                                                                     \
    return run_cond_clockwait(cond, mutex, clock, until);                          \
  }
CLOCKWAIT(muster_run_clockwait)
CLOCKWAIT(muster_run_clockwait_before)
VERSIONS(muster_run_clockwait, pthread_cond_clockwait, "GLIBC_2.30")
EXPORTED int pthread_cond_signal(pthread_cond_t* cond) {
  started();
  return run_cond_signal(cond);
}
EXPORTED int pthread_cond_broadcast(pthread_cond_t* cond) {
  started();
  return run_cond_broadcast(cond);
}

/* ---- other programs ----
 * What a bound thread starts is not bound. A new program keeps the mask of the thread that became
 * it; who does not return needs no narrowing, and who returns has failed. */

#define WIDE(type, call)              \
  started();                          \
  const bool was_bound = run_widen(); \
  type const result = call;           \
  if (was_bound) run_narrow();        \
  return result;

EXPORTED int execve(const char* path, char* const argv[],
                    char* const envp[]){WIDE(int, theirs.execve(path, argv, envp))} EXPORTED
    int execv(const char* path, char* const argv[]) {
  return execve(path, argv, environ);
}
EXPORTED int execvpe(const char* file, char* const argv[],
                     char* const envp[]){WIDE(int, theirs.execvpe(file, argv, envp))} EXPORTED
    int execvp(const char* file, char* const argv[]) {
  return execvpe(file, argv, environ);
}
EXPORTED int fexecve(int file, char* const argv[], char* const envp[]) {
  WIDE(int, theirs.fexecve(file, argv, envp))
}
static size_t count_words(va_list words) {
  size_t count = 1;
  while (va_arg(words, char*) != NULL) ++count;
  return count;
}

/* The first and all up to the null pointer, which comes along. */
static void take_words(char** into, const char* first, va_list* words) {
  memcpy(into, &first, sizeof first); /* as the exec functions have it, who change no word */
  do *++into = va_arg(*words, char*);
  while (*into != NULL);
}

/* Declares `argv`, on the caller's stack, and `words`, which stands behind it: to be ended. */
#define WORDS_FROM(first)                                              \
  va_list words;                                                       \
  va_start(words, first);                                              \
  char** const argv = alloca((count_words(words) + 1) * sizeof *argv); \
  va_end(words);                                                       \
  va_start(words, first);                                              \
  take_words(argv, first, &words);

EXPORTED int execl(const char* path, const char* first, ...) {
  WORDS_FROM(first)
  va_end(words);
  return execv(path, argv);
}
EXPORTED int execlp(const char* file, const char* first, ...) {
  WORDS_FROM(first)
  va_end(words);
  return execvp(file, argv);
}
EXPORTED int execle(const char* path, const char* first, ...) {
  WORDS_FROM(first)
  char* const* const envp = va_arg(words, char* const*);
  va_end(words);
  return execve(path, argv, envp);
}

EXPORTED int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                         const posix_spawnattr_t* attributes, char* const argv[],
                         char* const envp[]){
    WIDE(int, theirs.spawn(pid, path, actions, attributes, argv, envp))} EXPORTED
    int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                     const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]){
        WIDE(int, theirs.spawnp(pid, file, actions, attributes, argv, envp))} EXPORTED
    int system(const char* command){
        WIDE(int, theirs.system(command))} EXPORTED FILE* popen(const char* command,
                                                                const char* mode) {
  WIDE(FILE*, theirs.popen(command, mode))
}
