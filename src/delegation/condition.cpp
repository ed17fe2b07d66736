// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/condition.hpp"

#include <cerrno>
#include <chrono>

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
  enlist(self);
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
        if (!self.woken.wait_until(guard, end, is_signalled)) strike(self);
      }
      guard.unlock();
      errno = error;
    });
  } catch (...) {
    guard.lock();
    strike(self);
    throw;
  }
  require_own_process();
  return self.signalled;
}

void Condition::signal() {
  require_own_process();
  const std::scoped_lock guard(mutex_);
  if (anybody_waits()) release_first();
}

void Condition::broadcast() {
  require_own_process();
  const std::scoped_lock guard(mutex_);
  while (anybody_waits()) release_first();
}

void Condition::enlist(Waiter& last) {
  last.before = waiters_.before;
  last.next = &waiters_;
  last.before->next = &last;
  waiters_.before = &last;
}

void Condition::strike(Waiter& waiter) {
  waiter.before->next = waiter.next;
  waiter.next->before = waiter.before;
  waiter.before = waiter.next = &waiter;
}

void Condition::release_first() {
  auto& first = static_cast<Waiter&>(*waiters_.next);
  strike(first);
  first.signalled = true;
  first.woken.notify_one();  // with the mutex locked: then it is still there
}

void Condition::require_own_process() const {
  birth_.require("this condition was made",
                 "make the child's own, which is for the child's threads");
}

}  // namespace muster::delegation
