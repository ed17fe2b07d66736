// SPDX-License-Identifier: BSD-3-Clause
#include "bench/ck_lock.h"

#include <ck_cohort.h>
#include <ck_spinlock.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 128 };

static void fas_lock(ck_spinlock_fas_t* lock, void* context) {
  (void)context;
  ck_spinlock_fas_lock(lock);
}
static void fas_unlock(ck_spinlock_fas_t* lock, void* context) {
  (void)context;
  ck_spinlock_fas_unlock(lock);
}
static bool fas_locked(ck_spinlock_fas_t* lock, void* context) {
  (void)context;
  return ck_spinlock_fas_locked(lock);
}
CK_COHORT_PROTOTYPE(fas_fas, fas_lock, fas_unlock, fas_locked, fas_lock, fas_unlock, fas_locked)

struct bench_ck_lock {
  enum bench_ck_lock_kind kind;
  union {
    ck_spinlock_fas_t fas;
    ck_spinlock_ticket_t ticket;
    ck_spinlock_mcs_t mcs;
    ck_spinlock_clh_t* clh;
  } lock __attribute__((aligned(LINE)));
  ck_spinlock_fas_t global __attribute__((aligned(LINE)));
  ck_spinlock_fas_t local __attribute__((aligned(LINE)));
  CK_COHORT_INSTANCE(fas_fas) cohort __attribute__((aligned(LINE)));
} __attribute__((aligned(LINE)));

struct bench_ck_lock_local {
  struct bench_ck_lock* lock;
  ck_spinlock_mcs_context_t mcs __attribute__((aligned(LINE)));
  ck_spinlock_clh_t* clh;
} __attribute__((aligned(LINE)));

static void* take(size_t bytes) {
  void* memory = NULL;
  if (posix_memalign(&memory, LINE, (bytes + LINE - 1) / LINE * LINE) != 0) return NULL;
  memset(memory, 0, bytes);
  return memory;
}

struct bench_ck_lock* bench_ck_lock_make(enum bench_ck_lock_kind kind) {
  struct bench_ck_lock* lock = take(sizeof *lock);
  if (lock == NULL) return NULL;
  lock->kind = kind;
  switch (kind) {
    case BENCH_CK_FAS:
      ck_spinlock_fas_init(&lock->lock.fas);
      break;
    case BENCH_CK_TICKET:
      ck_spinlock_ticket_init(&lock->lock.ticket);
      break;
    case BENCH_CK_LOCK_MCS:
      ck_spinlock_mcs_init(&lock->lock.mcs);
      break;
    case BENCH_CK_CLH: {
      ck_spinlock_clh_t* unowned = take(LINE);
      if (unowned == NULL) return NULL;
      ck_spinlock_clh_init(&lock->lock.clh, unowned);
      break;
    }
    case BENCH_CK_COHORT:
      ck_spinlock_fas_init(&lock->global);
      ck_spinlock_fas_init(&lock->local);
      CK_COHORT_INIT(fas_fas, &lock->cohort, &lock->global, &lock->local,
                     CK_COHORT_DEFAULT_LOCAL_PASS_LIMIT);
      break;
  }
  return lock;
}

struct bench_ck_lock_local* bench_ck_lock_join(struct bench_ck_lock* lock) {
  struct bench_ck_lock_local* local = take(sizeof *local);
  if (local == NULL) return NULL;
  local->lock = lock;
  local->clh = take(LINE);
  return local->clh == NULL ? NULL : local;
}

void bench_ck_lock_acquire(struct bench_ck_lock_local* local) {
  struct bench_ck_lock* lock = local->lock;
  switch (lock->kind) {
    case BENCH_CK_FAS:
      ck_spinlock_fas_lock(&lock->lock.fas);
      break;
    case BENCH_CK_TICKET:
      ck_spinlock_ticket_lock(&lock->lock.ticket);
      break;
    case BENCH_CK_LOCK_MCS:
      ck_spinlock_mcs_lock(&lock->lock.mcs, &local->mcs);
      break;
    case BENCH_CK_CLH:
      ck_spinlock_clh_lock(&lock->lock.clh, local->clh);
      break;
    case BENCH_CK_COHORT:
      CK_COHORT_LOCK(fas_fas, &lock->cohort, NULL, NULL);
      break;
  }
}

void bench_ck_lock_release(struct bench_ck_lock_local* local) {
  struct bench_ck_lock* lock = local->lock;
  switch (lock->kind) {
    case BENCH_CK_FAS:
      ck_spinlock_fas_unlock(&lock->lock.fas);
      break;
    case BENCH_CK_TICKET:
      ck_spinlock_ticket_unlock(&lock->lock.ticket);
      break;
    case BENCH_CK_LOCK_MCS:
      ck_spinlock_mcs_unlock(&lock->lock.mcs, &local->mcs);
      break;
    case BENCH_CK_CLH:
      ck_spinlock_clh_unlock(&local->clh);
      break;
    case BENCH_CK_COHORT:
      CK_COHORT_UNLOCK(fas_fas, &lock->cohort, NULL, NULL);
      break;
  }
}
