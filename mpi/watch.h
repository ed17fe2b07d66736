/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who came when to a barrier of one host, for MUSTER_REPORT: how long each rank waited for the last
 * one, who that was, and what the barrier itself took. Lies in shared memory behind the barrier's
 * own.
 *
 * Each rank notes when it comes, on a line of its own. To read all lines costs more than a
 * barrier. So a wait that was long pays for it, and is counted by the first of the ranks that
 * waited long, or by rank 0 if nobody was late. Of the short ones one in some, chosen by the
 * barrier's number, is counted for all, by rank 0. A barrier pays for one look at the counter
 * (clock.h).
 */
#ifndef MUSTER_MPI_WATCH_H
#define MUSTER_MPI_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct watch watch;

/** What is known of one rank's part; times in ns. */
typedef struct watched_rank {
  int64_t waited_ns; /**< it, for the last */
  int64_t caused_ns; /**< all others, for it */
  int64_t last;      /**< times it came last */
} watched_rank;

enum { watch_one_in = 64 };

/** Scattered, so that no rhythm of the program's meets those that are counted. */
static inline uint64_t watch_scattered(uint64_t number) {
  return number * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

/** Whether that barrier may be counted though all waits were short: the first ones, then one in
 * `watch_one_in`. */
static inline bool watch_may_count(uint64_t number) {
  return number < watch_one_in || watch_scattered(number) % watch_one_in == 0;
}

/** Bytes of one for so many ranks; a multiple of the unit that writers keep apart. */
size_t watch_bytes(unsigned ranks);

/** For other communicators of the same ranks, before any of them comes to its first barrier. */
void watch_begin(watch* of, unsigned ranks);

/** Rank `rank` comes to a barrier, the `number`th of its communicator; when. */
int64_t watch_come(watch* of, unsigned rank, uint64_t number);

/** It leaves that barrier. All ranks call it where watch_may_count(): rank 0 counts, and would come
 * late to the next barrier if it alone did. Else who surely waited a few microseconds at most need
 * not: then `polled` is false. */
void watch_leave(watch* of, unsigned ranks, unsigned rank, uint64_t number, int64_t came_ns,
                 bool polled);

/** For rank 0, after it has left that barrier: waits until who counts it has done so, though not
 * long. */
void watch_settle(const watch* of, unsigned ranks, uint64_t number);

/** What rank `rank` has come to. Any rank may ask at any time; what is being added may be missing.
 */
watched_rank watch_of(const watch* of, unsigned ranks, unsigned rank);

/** From the last's coming to the leaving of who counted it, over all barriers; ns. */
int64_t watch_own_ns(const watch* of, unsigned ranks);

#endif /* MUSTER_MPI_WATCH_H */
