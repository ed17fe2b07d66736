// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/condition.hpp"

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
  const std::int64_t end = until_ns(timeout_ns);
  Mutual machine;
  decltype(waiters_)::Waiter self{};
  try {
    const bool is_signalled = waiters_.wait(machine, self, end, [&](auto body) {
      unlocked(lock_, [&] {
        if (!birth_.is_here()) return;  // a post has forked: nobody signals in the child
        const KeepErrno of_section;
        body();
      });
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
