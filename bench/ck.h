// SPDX-License-Identifier: BSD-3-Clause
// ConcurrencyKit's five barriers behind one face; in C, because its headers are no C++.
// Nothing here is thread-safe but the waits, each by its own rank.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct bench_ck;        // a barrier with its participants' states
struct bench_ck_local;  // what one participant passes to its wait

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

void bench_ck_wait_centralized(struct bench_ck_local* local);
void bench_ck_wait_combining(struct bench_ck_local* local);
void bench_ck_wait_dissemination(struct bench_ck_local* local);
void bench_ck_wait_mcs(struct bench_ck_local* local);
void bench_ck_wait_tournament(struct bench_ck_local* local);

#ifdef __cplusplus
}
#endif
