// SPDX-License-Identifier: BSD-3-Clause
// ConcurrencyKit's five barriers behind one face; made in C, as its own tests do it.
// Nothing here is thread-safe but the waits, each by its own rank.
#pragma once

#include "bench/ck_headers.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BENCH_CK_LINE = 128 };

struct bench_ck;  // a barrier with its participants' states

// What one participant passes to its wait.
struct bench_ck_local {
  union {
    ck_barrier_centralized_t* centralized;
    ck_barrier_combining_t* combining;
    ck_barrier_dissemination_t* dissemination;
    ck_barrier_mcs_t* mcs;
    ck_barrier_tournament_t* tournament;
  } barrier;
  union {
    ck_barrier_centralized_state_t centralized;
    ck_barrier_combining_state_t combining;
    ck_barrier_dissemination_state_t dissemination;
    ck_barrier_mcs_state_t mcs;
    ck_barrier_tournament_state_t tournament;
  } state;
  ck_barrier_combining_group_t* group;
  unsigned participants;
} __attribute__((aligned(BENCH_CK_LINE)));

enum bench_ck_kind {
  BENCH_CK_CENTRALIZED,  // no pointers inside: works between processes, too
  BENCH_CK_COMBINING,    // a binary tree over groups of two
  BENCH_CK_DISSEMINATION,
  BENCH_CK_MCS,
  BENCH_CK_TOURNAMENT
};

/// Made before the participants start, in memory that processes made by fork share. Null if there
/// is no memory. It is never freed: it ends with the team's processes.
struct bench_ck* bench_ck_make(enum bench_ck_kind kind, unsigned participants);
struct bench_ck_local* bench_ck_join(struct bench_ck* barrier, unsigned rank);

// Inlined, so that the measured loop calls ConcurrencyKit's library directly, as its users do.

static inline void bench_ck_wait_centralized(struct bench_ck_local* local) {
  ck_barrier_centralized(local->barrier.centralized, &local->state.centralized,
                         local->participants);
}

static inline void bench_ck_wait_combining(struct bench_ck_local* local) {
  ck_barrier_combining(local->barrier.combining, local->group, &local->state.combining);
}

static inline void bench_ck_wait_dissemination(struct bench_ck_local* local) {
  ck_barrier_dissemination(local->barrier.dissemination, &local->state.dissemination);
}

static inline void bench_ck_wait_mcs(struct bench_ck_local* local) {
  ck_barrier_mcs(local->barrier.mcs, &local->state.mcs);
}

static inline void bench_ck_wait_tournament(struct bench_ck_local* local) {
  ck_barrier_tournament(local->barrier.tournament, &local->state.tournament);
}

#ifdef __cplusplus
}
#endif
