/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A clock that costs a barrier little. clock_gettime() takes 25 ns, and waits for the loads before
 * it, so no barrier begins while the last one's line is on its way. Where the kernel itself goes by
 * the processor's counter, that is read without a wait: it may tell a time that is too early, by a
 * line's transfer at most.
 */
#ifndef MUSTER_MPI_CLOCK_H
#define MUSTER_MPI_CLOCK_H

#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

/** How one process makes ns of the counter, for all that share it. All 0: it is not used. */
typedef struct counter_clock {
  uint64_t from;
  int64_t from_ns;
  uint64_t ns_per_tick; /**< times 2^32 */
} counter_clock;

/** Some time before counter_clock_made(): the longer, the better. Once. */
void counter_clock_start(void);

/** Takes a millisecond if it was not started before. */
counter_clock counter_clock_made(void);

/** As now_ns(), but for what is said above. */
static inline int64_t counter_ns(const counter_clock* by) {
#if defined(__x86_64__)
  if (__builtin_expect(by->ns_per_tick != 0, 1)) {
    __extension__ typedef unsigned __int128 wide;
    return by->from_ns + (int64_t)((wide)(__rdtsc() - by->from) * by->ns_per_tick >> 32);
  }
#else
  (void)by;
#endif
  return now_ns();
}

/** After all loads before it. */
static inline int64_t counter_ns_after(const counter_clock* by) {
#if defined(__x86_64__)
  _mm_lfence();
#endif
  return counter_ns(by);
}

#endif /* MUSTER_MPI_CLOCK_H */
