// SPDX-License-Identifier: BSD-3-Clause
// ConcurrencyKit's spinlocks as its users get them: inlined into the measured loop. Each with what
// a thread passes to it, its Local.
#pragma once

#include "bench/ck_headers.h"
#include "bench/measure.hpp"

namespace muster::bench {

struct CkFas {
  struct Local {};
  void lock(Local&) { ck_spinlock_fas_lock(&word); }
  void unlock(Local&) { ck_spinlock_fas_unlock(&word); }

  alignas(kLine) ck_spinlock_fas_t word = CK_SPINLOCK_FAS_INITIALIZER;
};

struct CkTicket {
  struct Local {};
  void lock(Local&) { ck_spinlock_ticket_lock(&words); }
  void unlock(Local&) { ck_spinlock_ticket_unlock(&words); }

  alignas(kLine) ck_spinlock_ticket_t words = CK_SPINLOCK_TICKET_INITIALIZER;
};

struct CkMcs {
  struct alignas(kLine) Local {
    ck_spinlock_mcs_context_t context;
  };
  void lock(Local& local) { ck_spinlock_mcs_lock(&tail, &local.context); }
  void unlock(Local& local) { ck_spinlock_mcs_unlock(&tail, &local.context); }

  alignas(kLine) ck_spinlock_mcs_t tail = CK_SPINLOCK_MCS_INITIALIZER;
};

struct CkClh {
  /// Nodes go from thread to thread, and end with the process.
  struct alignas(kLine) Node {
    ck_spinlock_clh_t clh;
  };
  struct Local {
    ck_spinlock_clh_t* node = &(new Node)->clh;
  };
  CkClh() { ck_spinlock_clh_init(&tail, &(new Node)->clh); }
  void lock(Local& local) { ck_spinlock_clh_lock(&tail, local.node); }
  void unlock(Local& local) { ck_spinlock_clh_unlock(&local.node); }

  alignas(kLine) ck_spinlock_clh_t* tail;
};

/// Of two fas locks, all threads in one cohort.
class CkCohort {
  static void take(void* fas, void*) { ck_spinlock_fas_lock(static_cast<ck_spinlock_fas_t*>(fas)); }
  static void give(void* fas, void*) {
    ck_spinlock_fas_unlock(static_cast<ck_spinlock_fas_t*>(fas));
  }
  static bool is_taken(void* fas, void*) {
    return ck_spinlock_fas_locked(static_cast<ck_spinlock_fas_t*>(fas));
  }
  CK_COHORT_PROTOTYPE(fas_fas, take, give, is_taken, take, give, is_taken)

 public:
  struct Local {};
  CkCohort() {
    CK_COHORT_INIT(fas_fas, &cohort_, &global_.word, &local_.word,
                   CK_COHORT_DEFAULT_LOCAL_PASS_LIMIT);
  }
  void lock(Local&) { CK_COHORT_LOCK(fas_fas, &cohort_, nullptr, nullptr); }
  void unlock(Local&) { CK_COHORT_UNLOCK(fas_fas, &cohort_, nullptr, nullptr); }

 private:
  CkFas global_;
  CkFas local_;
  alignas(kLine) CK_COHORT_INSTANCE(fas_fas) cohort_;
};

struct CkRwlock {
  void lock() { ck_rwlock_write_lock(&words); }
  void unlock() { ck_rwlock_write_unlock(&words); }
  void lock_shared() { ck_rwlock_read_lock(&words); }
  void unlock_shared() { ck_rwlock_read_unlock(&words); }

  alignas(kLine) ck_rwlock_t words = CK_RWLOCK_INITIALIZER;
};

struct CkPflock {
  void lock() { ck_pflock_write_lock(&words); }
  void unlock() { ck_pflock_write_unlock(&words); }
  void lock_shared() { ck_pflock_read_lock(&words); }
  void unlock_shared() { ck_pflock_read_unlock(&words); }

  alignas(kLine) ck_pflock_t words = CK_PFLOCK_INITIALIZER;
};

}  // namespace muster::bench
