/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers between processes of one host, made and given back all the time: thousands live in a few
 * segments. One rank of a group leads: it makes a slot (memory for one barrier, and the barrier in
 * it) and offers it; the others take it. When a communicator goes, its slot is kept for a while for
 * the next one of the same processes in the same order, which then costs nothing to make.
 *
 * Invariants:
 * 1. A slot's memory is used again only after the leader and everybody who took it have destroyed
 *    their sides: each that took it counts itself out in the slot's last line.
 * 2. An idle slot is used again only by all of its processes in the same roles: who gave it up
 *    meanwhile says so, and all agree on a fresh one.
 */
#ifndef MUSTER_MPI_POOL_H
#define MUSTER_MPI_POOL_H

#include <muster/muster.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpi/host.h"
#include "mpi/watch.h"

typedef struct mapping mapping;

/** One process's side of a barrier. */
typedef struct slot {
  muster_barrier* barrier;
  unsigned rank;            /**< in the barrier */
  unsigned polls;           /**< of this wait so far; see attend() */
  int64_t last_attended_ns; /**< when MPI's progress was made for it last */
  int64_t found_ns;         /**< when that found something last */
  bool expects_more;        /**< it was not long after the time before */
  watch* watch;             /**< NULL: nobody asked for a report */

  /* the pool's own */
  struct slot* next;
  uint64_t leader; /**< the leader's identity.process */
  uint64_t serial; /**< among the leader's */
  unsigned participants;
  mapping* in;
  size_t offset;
  size_t bytes;
  struct extent* room; /**< if this process leads; else NULL */
  uint64_t* members;   /**< the same: identity.process by rank */
} slot;

/** What a leader tells the others. Plain data, sent as bytes. */
typedef struct offer {
  uint64_t leader;
  uint64_t serial;
  uint64_t segment; /**< serial among the leader's */
  uint64_t offset;
  uint64_t bytes;
  uint64_t watch_bytes; /**< 0: it has none */
  uint32_t pid;
  int32_t fd;
  uint32_t used_before;
  uint32_t valid; /**< 0: the leader could not */
} offer;

typedef enum taken { taken_failed = 0, taken_stale = 1, taken_ok = 2 } taken;

/** A slot that served these members before, led by this process, rank 0; NULL if there is none. */
slot* pool_find(const identity* members, unsigned count, offer* told);

/** Makes a slot for `members`, led by this process, rank 0. NULL, with the reason in `why`, if that
 * cannot be done. */
slot* pool_make(const identity* members, unsigned count, const muster_options* options,
                bool watched, offer* told, char* why, size_t why_bytes);

/** Takes what was offered, as `rank` of `count`. */
taken pool_take(const offer* told, unsigned rank, unsigned count, slot** result, char* why,
                size_t why_bytes);

/** Nobody of this process will wait there any more. `keep`: it may be used again. NULL is ignored.
 */
void pool_give_back(slot* done, bool keep);

/** By the leader of a fresh slot that nobody else has, since all who took it have given it back:
 * its memory is free at once. NULL is ignored. */
void pool_take_back(slot* unused);

/** Has every slot's waits call `progress(slot)`, as muster_options.progress; before the first slot
 * is made. */
void pool_set_progress(int (*progress)(void* waiting));

#endif /* MUSTER_MPI_POOL_H */
