// SPDX-License-Identifier: BSD-3-Clause
// Condition variables for critical sections. The section that waits gives its lock up, blocks the
// thread that executes it (a server's spare goes on) and takes the lock again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "delegation/any_lock.hpp"

namespace muster::delegation {

class Condition {
 public:
  /// For sections of `lock`, which from now on may wait. Before the lock is used. Throws
  /// Error(unsupported) for kinds whose sections other clients execute.
  explicit Condition(AnyLock& lock) : lock_(lock) { lock.allow_conditions(); }
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  /// Inside a section of its lock: waits to be signalled; may also return without (test again). For
  /// `timeout_ns` at most, then false. Throws Error(invalid) outside of such a section.
  bool wait(std::int64_t timeout_ns = WaitPolicy::forever);
  /// From anywhere.
  void signal();
  void broadcast();

 private:
  void count_signal();

  AnyLock& lock_;
  std::mutex mutex_;
  std::condition_variable condition_;
  std::uint64_t signals_ = 0;
};

}  // namespace muster::delegation
