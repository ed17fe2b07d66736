// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/condition.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>

#include "delegation/unlocked.hpp"
#include "machine/error.hpp"

namespace muster::delegation {

Condition::Condition(AnyLock& lock) : lock_(lock) { lock.allow_conditions(); }

bool Condition::wait(std::int64_t timeout_ns) {
  require_own_process();
  if (!lock_.is_innermost()) {
    throw Error(Status::invalid,
                "a condition is waited for inside a section of its lock, not of another one inside "
                "that");
  }
  const NoCancellation whole;
  const int error = errno;  // what the section has left there
  Waiter self;
  // Before the lock is given up: no signal after that is lost.
  std::unique_lock guard(mutex_);
  waiters_.push_back(&self);
  guard.unlock();
  try {
    unlocked(lock_, [&] {
      if (!birth_.is_here()) return;  // a post has forked: nobody signals in the child
      const auto is_signalled = [&] { return self.signalled; };
      guard.lock();
      const std::int64_t now = now_ns();
      if (timeout_ns > WaitPolicy::forever - now) {
        self.woken.wait(guard, is_signalled);
      } else {
        const std::chrono::steady_clock::time_point end{std::chrono::nanoseconds(now + timeout_ns)};
        if (!self.woken.wait_until(guard, end, is_signalled)) std::erase(waiters_, &self);
      }
      guard.unlock();
      errno = error;
    });
  } catch (...) {
    guard.lock();
    std::erase(waiters_, &self);
    throw;
  }
  require_own_process();
  return self.signalled;
}

void Condition::signal() { release(1); }

void Condition::broadcast() { release(std::numeric_limits<std::size_t>::max()); }

void Condition::release(std::size_t most) {
  require_own_process();
  const std::scoped_lock guard(mutex_);
  const auto last = waiters_.begin() + static_cast<std::ptrdiff_t>(std::min(most, waiters_.size()));
  for (auto at = waiters_.begin(); at != last; ++at) {
    (*at)->signalled = true;
    (*at)->woken.notify_one();  // with the mutex locked: then it is still there
  }
  waiters_.erase(waiters_.begin(), last);
}

void Condition::require_own_process() const {
  birth_.require("this condition was made",
                 "make the child's own, which is for the child's threads");
}

}  // namespace muster::delegation
