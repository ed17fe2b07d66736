// SPDX-License-Identifier: BSD-3-Clause
// ConcurrencyKit's spinlocks behind one face; in C, because its headers are no C++.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct bench_ck_lock;        // one lock
struct bench_ck_lock_local;  // what one thread passes to it

enum bench_ck_lock_kind {
  BENCH_CK_FAS,
  BENCH_CK_TICKET,
  BENCH_CK_LOCK_MCS,
  BENCH_CK_CLH,
  BENCH_CK_COHORT  // of two fas locks, all threads in one cohort
};

/// Null if there is no memory. Never freed: it ends with the process.
struct bench_ck_lock* bench_ck_lock_make(enum bench_ck_lock_kind kind);
struct bench_ck_lock_local* bench_ck_lock_join(struct bench_ck_lock* lock);

void bench_ck_lock_acquire(struct bench_ck_lock_local* local);
void bench_ck_lock_release(struct bench_ck_lock_local* local);

#ifdef __cplusplus
}
#endif
