// SPDX-License-Identifier: BSD-3-Clause
// ConcurrencyKit's headers, which are C, where a void* becomes any pointer.
#pragma once

#ifdef __cplusplus
#include <ck_pr.h>

namespace muster::bench {
struct VoidPointer {
  void* pointer;
  template <class T>
  operator T*() const {  // NOLINT(google-explicit-constructor): as in C
    return static_cast<T*>(pointer);
  }
};
}  // namespace muster::bench

#define ck_pr_fas_ptr(target, value) \
  muster::bench::VoidPointer { ck_pr_fas_ptr(target, value) }
#endif

#include <ck_cohort.h>
#include <ck_pflock.h>
#include <ck_rwlock.h>
#include <ck_spinlock.h>

#ifdef __cplusplus
#undef ck_pr_fas_ptr
extern "C" {
#endif
#include <ck_barrier.h>  // what it includes is above
#ifdef __cplusplus
}
#endif
