// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/condition.hpp"

#include <cerrno>

#include "delegation/station.hpp"
#include "machine/error.hpp"

namespace muster::delegation {

/// Not in any_lock.cpp: it needs the station, which needs locks.
void AnyLock::unlocked(Section body) {
  Thread& thread = this_thread;
  do {
    admit_process();
    require_held_here();
  } while (!run_deferred());  // `body` may wait for these, one of which may fork
  const unsigned process = generation();
  int error = errno;
  const Share::Turn turn = share_ != nullptr ? share_->turn() : Share::Turn();
  const bool is_acquired = is_acquired_here();
  if (is_acquired) {
    leave_acquired();
    give_acquired();
  } else {
    give_up();
    thread.leave();
  }
  if (share_ != nullptr) Share::end(turn);
  bool whole = true;
  thread.quick = 0;
  {
    const Inside none(nullptr, thread.for_another);
    const Calling outside(nullptr);
    send_kept_posts();
    const Blocking blocking;
    errno = error;
    body();
    error = errno;
    if (process == generation()) [[likely]]
      whole = take_again();
  }
  thread.last_lock = 0;  // what was executed may have left requests in other seats, to come first
  if (share_ != nullptr && process == generation()) share_->begin(*turn.whose);
  if (is_acquired) {
    enter_acquired();
  } else {
    thread.enter(this);
  }
  errno = error;
  if (!whole) {
    throw Error(Status::peer,
                "a process died inside a section of this lock meanwhile: what it protects may be "
                "half changed. Leave this section, and set it right in muster_lock_recover()");
  }
}

Condition::Condition(AnyLock& lock) : lock_(lock) { lock.allow_conditions(); }

bool Condition::wait(std::int64_t timeout_ns) {
  require_own_process();
  if (!lock_.is_innermost()) {
    throw Error(Status::invalid,
                "a condition is waited for inside a section of its lock, not of another one inside "
                "that");
  }
  const NoCancellation whole;
  const std::int64_t end = until_ns(timeout_ns);
  Mutual machine;
  decltype(waiters_)::Waiter self{};
  try {
    const bool is_signalled = waiters_.wait(machine, self, end, [&](auto body) {
      auto outside = [&] {
        if (!birth_.is_here()) return;  // a post has forked: nobody signals in the child
        const KeepErrno of_section;
        body();
      };
      lock_.unlocked(section_of(outside));
    });
    require_own_process();
    return is_signalled;
  } catch (...) {
    if (birth_.is_here()) Mutual::within(waiters_.mutex, [&] { waiters_.leave(machine, self); });
    throw;
  }
}

void Condition::signal(bool all) {
  require_own_process();
  Mutual machine;
  waiters_.signal(machine, all);
}

void Condition::require_own_process() const {
  birth_.require("this condition was made",
                 "make the child's own, which is for the child's threads");
}

}  // namespace muster::delegation
