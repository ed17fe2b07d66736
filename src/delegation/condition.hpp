// SPDX-License-Identifier: BSD-3-Clause
// Condition variables for critical sections. The section that waits gives its lock up, blocks the
// thread that executes it (a server's spare goes on) and takes the lock again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "delegation/any_lock.hpp"

namespace muster::delegation {

class Condition {
 public:
  /// For sections of `lock`, which from now on may wait. Before the lock is used. Throws
  /// Error(unsupported) for kinds whose sections other clients execute. A fork's child makes its
  /// own: there all of these throw Error(busy).
  explicit Condition(AnyLock& lock);
  ~Condition();
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  /// Inside a section of its lock: waits to be signalled; may also return without (test again). For
  /// `timeout_ns` at most, then false. Throws Error(invalid) outside of such a section; Error(peer)
  /// with the lock taken: a process died meanwhile in a section of this shared lock. No
  /// cancellation point.
  bool wait(std::int64_t timeout_ns = WaitPolicy::forever);
  /// From anywhere. Whoever wakes up may destroy the condition.
  void signal();
  void broadcast();

 private:
  struct Waiters {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t signals = 0;
  };

  void require_own_process() const;

  AnyLock& lock_;
  const Birth birth_;
  std::unique_ptr<Waiters> waiters_ = std::make_unique<Waiters>();
};

}  // namespace muster::delegation
