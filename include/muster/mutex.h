/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NUMA-aware mutex, where pthread_mutex_t or std::mutex was: sections stay where they are, no
 * server, nothing is delegated. Part of muster.h.
 *
 *   static muster_mutex mutex = MUSTER_MUTEX_INITIALIZER;
 *   muster_mutex_lock(&mutex);
 *   ++counter;
 *   muster_mutex_unlock(&mutex);
 *
 * The word is anybody's while it is free: who comes back soon has the data in its cache. Those that
 * wait stand in line, and whoever is first calls the next one of its own NUMA node; the others come
 * after 256 such calls at most. The first one sleeps after half a microsecond, and what is passed
 * over for a millisecond has the mutex next. It is `muster run --mutex cna`, the algorithm that
 * `muster check` explores: Dice and Kogan, Compact NUMA-aware locks, EuroSys 2019.
 *
 * It belongs to one process, is not recursive, is not for signal handlers, and is unlocked by the
 * thread that locked it; none of that is checked. In place of a PTHREAD_MUTEX_RECURSIVE lock it in
 * the outer function only, or leave the program as it is: `muster run --mutex cna` serves those,
 * too. C has no condition for it. All zero is a free mutex; a free one needs no destruction. In a
 * fork's child a mutex that another thread held stays taken, as with pthread_mutex_t; who waited
 * there is forgotten. No function here is a cancellation point or changes errno, nor allocates
 * after a thread's first wait. Lock and unlock of a free mutex are one atomic operation each, in
 * line.
 */
#ifndef MUSTER_MUTEX_H
#define MUSTER_MUTEX_H

#include <stdint.h>

#include "muster/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** 28 bytes; what is in them is the library's. */
typedef struct muster_mutex {
  uint32_t words[7];
} muster_mutex;

#define MUSTER_MUTEX_INITIALIZER \
  {                              \
    { 0, 0, 0, 0, 0, 0, 0 }      \
  }

/** Where the compiler has no atomic builtins, or another language calls: the whole function. Never
 * fail; trylock: nonzero if it was taken. Thread-safe. */
MUSTER_API void muster_mutex_lock_slowly(muster_mutex* mutex);
MUSTER_API int muster_mutex_trylock_slowly(muster_mutex* mutex);
MUSTER_API void muster_mutex_unlock_slowly(muster_mutex* mutex);

/** Takes it, or gives up after `timeout_ns` (0 or less: at once) with MUSTER_ETIMEDOUT. Waits
 * beside the line, not in it. Thread-safe. */
MUSTER_API int muster_mutex_timedlock(muster_mutex* mutex, int64_t timeout_ns);

#if defined(__GNUC__)
#define MUSTER_MUTEX_CHANGE(mutex, from, to, order)                                          \
  __extension__({                                                                            \
    uint32_t muster_seen_ = (from);                                                          \
    __builtin_expect(__atomic_compare_exchange_n(&(mutex)->words[0], &muster_seen_, (to), 0, \
                                                 (order), __ATOMIC_RELAXED),                 \
                     1);                                                                     \
  })
#else
#define MUSTER_MUTEX_CHANGE(mutex, from, to, order) 0
#endif

/** Takes it; waits for it. */
static __inline void muster_mutex_lock(muster_mutex* mutex) {
  if (!MUSTER_MUTEX_CHANGE(mutex, 0, 1, __ATOMIC_ACQUIRE)) muster_mutex_lock_slowly(mutex);
}

/** Takes it if it is free; nonzero if so, where pthread_mutex_trylock() returns 0. */
static __inline int muster_mutex_trylock(muster_mutex* mutex) {
  return MUSTER_MUTEX_CHANGE(mutex, 0, 1, __ATOMIC_ACQUIRE) || muster_mutex_trylock_slowly(mutex);
}

/** Gives it back. Touches nothing of it afterwards: who takes it next may free it. */
static __inline void muster_mutex_unlock(muster_mutex* mutex) {
  if (!MUSTER_MUTEX_CHANGE(mutex, 1, 0, __ATOMIC_RELEASE)) muster_mutex_unlock_slowly(mutex);
}

#ifdef __cplusplus
}
#endif

#endif /* MUSTER_MUTEX_H */
