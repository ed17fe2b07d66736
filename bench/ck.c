// SPDX-License-Identifier: BSD-3-Clause
// Set up as ConcurrencyKit's own regression tests do it; states on lines of their own.
#include "bench/ck.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct bench_ck {
  struct bench_ck_local* locals;
};

// Zeroed memory on lines of its own, shared with processes forked later.
static void* take(size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

// An array of `participants` pointers to arrays of `each` bytes.
static void** take_each(unsigned participants, size_t each) {
  void** rows = take(participants * sizeof *rows);
  const size_t bytes = (each + BENCH_CK_LINE - 1) / BENCH_CK_LINE * BENCH_CK_LINE;
  for (unsigned i = 0; rows != NULL && i < participants; ++i) {
    if (posix_memalign(&rows[i], BENCH_CK_LINE, bytes) != 0) return NULL;
    memset(rows[i], 0, bytes);  // not all is set where participants are no power of two
  }
  return rows;
}

static int init_combining(struct bench_ck_local* locals, unsigned participants) {
  const unsigned groups = (participants + 1) / 2;
  ck_barrier_combining_t* barrier = take(sizeof *barrier);
  ck_barrier_combining_group_t* group = take((groups + 1) * sizeof *group);
  if (barrier == NULL || group == NULL) return 0;
  ck_barrier_combining_init(barrier, &group[groups]);
  for (unsigned g = 0; g < groups; ++g) {
    const unsigned members = 2 * g + 1 < participants ? 2 : 1;
    ck_barrier_combining_group_init(barrier, &group[g], members);
  }
  const ck_barrier_combining_state_t initial = CK_BARRIER_COMBINING_STATE_INITIALIZER;
  for (unsigned i = 0; i < participants; ++i) {
    locals[i].barrier.combining = barrier;
    locals[i].state.combining = initial;
    locals[i].group = &group[i / 2];
  }
  return 1;
}

static int init_dissemination(struct bench_ck_local* locals, unsigned participants) {
  ck_barrier_dissemination_t* barrier = take(participants * sizeof *barrier);
  void** flags = take_each(participants, ck_barrier_dissemination_size(participants) *
                                             sizeof(ck_barrier_dissemination_flag_t));
  if (barrier == NULL || flags == NULL) return 0;
  ck_barrier_dissemination_init(barrier, (ck_barrier_dissemination_flag_t**)flags, participants);
  for (unsigned i = 0; i < participants; ++i) {
    locals[i].barrier.dissemination = barrier;
    ck_barrier_dissemination_subscribe(barrier, &locals[i].state.dissemination);
  }
  return 1;
}

static int init_mcs(struct bench_ck_local* locals, unsigned participants) {
  ck_barrier_mcs_t* barrier = take(participants * sizeof *barrier);
  if (barrier == NULL) return 0;
  ck_barrier_mcs_init(barrier, participants);
  for (unsigned i = 0; i < participants; ++i) {
    locals[i].barrier.mcs = barrier;
    ck_barrier_mcs_subscribe(barrier, &locals[i].state.mcs);
  }
  return 1;
}

static int init_tournament(struct bench_ck_local* locals, unsigned participants) {
  ck_barrier_tournament_t* barrier = take(sizeof *barrier);
  void** rounds = take_each(participants, ck_barrier_tournament_size(participants) *
                                              sizeof(ck_barrier_tournament_round_t));
  if (barrier == NULL || rounds == NULL) return 0;
  ck_barrier_tournament_init(barrier, (ck_barrier_tournament_round_t**)rounds, participants);
  for (unsigned i = 0; i < participants; ++i) {
    locals[i].barrier.tournament = barrier;
    ck_barrier_tournament_subscribe(barrier, &locals[i].state.tournament);
  }
  return 1;
}

static int init_centralized(struct bench_ck_local* locals, unsigned participants) {
  ck_barrier_centralized_t* barrier = take(sizeof *barrier);
  if (barrier == NULL) return 0;
  for (unsigned i = 0; i < participants; ++i) {
    locals[i].barrier.centralized = barrier;
    locals[i].participants = participants;
  }
  return 1;
}

struct bench_ck* bench_ck_make(enum bench_ck_kind kind, unsigned participants) {
  static int (*const init[])(struct bench_ck_local*, unsigned) = {
      [BENCH_CK_CENTRALIZED] = init_centralized,     [BENCH_CK_COMBINING] = init_combining,
      [BENCH_CK_DISSEMINATION] = init_dissemination, [BENCH_CK_MCS] = init_mcs,
      [BENCH_CK_TOURNAMENT] = init_tournament,
  };
  struct bench_ck* barrier = take(sizeof *barrier);
  if (barrier == NULL) return NULL;
  barrier->locals = take(participants * sizeof *barrier->locals);
  if (barrier->locals == NULL || !init[kind](barrier->locals, participants)) return NULL;
  return barrier;
}

struct bench_ck_local* bench_ck_join(struct bench_ck* barrier, unsigned rank) {
  return &barrier->locals[rank];
}
