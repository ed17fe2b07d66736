// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/condition.hpp"

#include <cerrno>
#include <chrono>

#include "delegation/kept.hpp"
#include "delegation/station.hpp"
#include "machine/error.hpp"

namespace muster::delegation {

Condition::Condition(AnyLock& lock) : lock_(lock) { lock.allow_conditions(); }

Condition::~Condition() {
  // The C library would await that the parent's threads, which are not here, no longer wait.
  if (!birth_.is_here()) static_cast<void>(waiters_.release());
}

bool Condition::wait(std::int64_t timeout_ns) {
  require_own_process();
  Thread& thread = this_thread;
  if (thread.inside != &lock_) {
    throw Error(Status::invalid, "a condition is waited for inside a section of its lock");
  }
  const NoCancellation whole;
  const int error = errno;  // what the section has left there
  // Before the lock is given up: no signal after that is lost.
  std::unique_lock guard(waiters_->mutex);
  const std::uint64_t seen = waiters_->signals;
  guard.unlock();
  lock_.give_up();
  // What it has posted to its own lock is executed at its end; to others, now.
  thread.inside = nullptr;
  {
    const KeepLast last;
    send_kept_posts();
  }
  if (!birth_.is_here()) [[unlikely]] {  // one has forked: nobody signals in the child
    thread.inside = &lock_;
    require_own_process();
  }
  bool signalled = true;
  bool whole_lock = true;
  const auto is_signalled = [&] { return waiters_->signals != seen; };
  {
    const Blocking blocking(thread.serving);
    guard.lock();
    const std::int64_t now = now_ns();
    if (timeout_ns > WaitPolicy::forever - now) {
      waiters_->changed.wait(guard, is_signalled);
    } else {
      const std::chrono::steady_clock::time_point end{std::chrono::nanoseconds(now + timeout_ns)};
      signalled = waiters_->changed.wait_until(guard, end, is_signalled);
    }
    guard.unlock();
    whole_lock = lock_.take_again();
  }
  thread.inside = &lock_;
  errno = error;
  if (!whole_lock) {
    throw Error(Status::peer,
                "a process died inside a section of this lock while this one waited: what it "
                "protects may be half changed. Leave this section, and set it right in "
                "muster_lock_recover()");
  }
  return signalled;
}

void Condition::signal() {
  require_own_process();
  const std::scoped_lock guard(waiters_->mutex);
  ++waiters_->signals;
  waiters_->changed.notify_one();
}

void Condition::broadcast() {
  require_own_process();
  const std::scoped_lock guard(waiters_->mutex);
  ++waiters_->signals;
  waiters_->changed.notify_all();
}

void Condition::require_own_process() const {
  birth_.require("this condition was made",
                 "make the child's own, which is for the child's threads");
}

}  // namespace muster::delegation
