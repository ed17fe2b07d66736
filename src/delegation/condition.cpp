// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/condition.hpp"

#include <chrono>

#include "delegation/station.hpp"
#include "machine/error.hpp"

namespace muster::delegation {

bool Condition::wait(std::int64_t timeout_ns) {
  Thread& thread = this_thread;
  if (thread.inside != &lock_) {
    throw Error(Status::invalid, "a condition is waited for inside a section of its lock");
  }
  std::unique_lock guard(mutex_);  // before the lock is given up: no signal is lost
  lock_.give_up();
  // Requests that the section posted belong to it, and are executed at its end.
  thread.inside = nullptr;
  Station* const serving = thread.serving;
  if (serving != nullptr) serving->enter_blocking();
  bool signalled = true;
  if (timeout_ns == WaitPolicy::forever) {
    condition_.wait(guard);
  } else {
    const auto timeout = std::chrono::nanoseconds(timeout_ns);
    signalled = condition_.wait_until(guard, std::chrono::steady_clock::now() + timeout) ==
                std::cv_status::no_timeout;
  }
  guard.unlock();
  lock_.take_again();
  if (serving != nullptr) serving->leave_blocking();
  thread.inside = &lock_;
  return signalled;
}

void Condition::signal() {
  { const std::scoped_lock guard(mutex_); }
  condition_.notify_one();
}

void Condition::broadcast() {
  { const std::scoped_lock guard(mutex_); }
  condition_.notify_all();
}

}  // namespace muster::delegation
