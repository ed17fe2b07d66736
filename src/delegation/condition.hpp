// SPDX-License-Identifier: BSD-3-Clause
// Condition variables for critical sections. The section that waits gives its lock up, blocks the
// thread that executes it (a server's spare goes on) and takes the lock again.
#pragma once

#include <cstdint>

#include "delegation/any_lock.hpp"
#include "lock/condition.hpp"
#include "machine/mutual.hpp"

namespace muster::delegation {

class Condition {
 public:
  /// For sections of `lock`, which from now on may wait. Before the lock is used. Throws
  /// Error(unsupported) for kinds whose sections other clients execute. A fork's child makes its
  /// own: there all of these throw Error(busy).
  explicit Condition(AnyLock& lock);

  /// Inside a section of its lock: waits to be signalled; may also return without (test again). For
  /// `timeout_ns` at most, then false. Throws Error(invalid) where the innermost section is not one
  /// of that lock; Error(peer) with the lock taken: a process died meanwhile in a section of this
  /// shared lock. No cancellation point.
  bool wait(std::int64_t timeout_ns = WaitPolicy::forever);
  /// Releases the one that has waited longest, if any waits, or `all`. From anywhere. Whoever wakes
  /// up may destroy the condition.
  void signal(bool all = false);

 private:
  void require_own_process() const;

  AnyLock& lock_;
  const Birth birth_;
  locks::Condition<Mutual> waiters_{};
};

}  // namespace muster::delegation
