// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/condition.hpp"

#include <chrono>

#include "delegation/kept.hpp"
#include "delegation/station.hpp"
#include "machine/error.hpp"

namespace muster::delegation {

bool Condition::wait(std::int64_t timeout_ns) {
  Thread& thread = this_thread;
  if (thread.inside != &lock_) {
    throw Error(Status::invalid, "a condition is waited for inside a section of its lock");
  }
  // Before the lock is given up: no signal after that is lost.
  std::unique_lock guard(mutex_);
  const std::uint64_t seen = signals_;
  guard.unlock();
  lock_.give_up();
  // What it has posted to its own lock is executed at its end; to others, now.
  thread.inside = nullptr;
  send_kept_posts();
  Station* const serving = thread.serving;
  if (serving != nullptr) serving->enter_blocking();
  bool signalled = true;
  const auto is_signalled = [&] { return signals_ != seen; };
  guard.lock();
  if (timeout_ns == WaitPolicy::forever) {
    condition_.wait(guard, is_signalled);
  } else {
    const auto timeout = std::chrono::nanoseconds(timeout_ns);
    signalled =
        condition_.wait_until(guard, std::chrono::steady_clock::now() + timeout, is_signalled);
  }
  guard.unlock();
  lock_.take_again();
  if (serving != nullptr) serving->leave_blocking();
  thread.inside = &lock_;
  return signalled;
}

void Condition::count_signal() {
  const std::scoped_lock guard(mutex_);
  ++signals_;
}

void Condition::signal() {
  count_signal();
  condition_.notify_one();
}

void Condition::broadcast() {
  count_signal();
  condition_.notify_all();
}

}  // namespace muster::delegation
