// SPDX-License-Identifier: BSD-3-Clause
// Locks that threads take for themselves, beside sections that are calls.
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "delegation/any_lock.hpp"
#include "delegation/kept.hpp"
#include "machine/error.hpp"

namespace muster::delegation {

bool AnyLock::acquire(std::int64_t end_ns) {
  admit();
  const int error = errno;  // waiting may change it
  if (!try_take(false)) {
    const NoCancellation whole;
    const bool is_taken = wait_to_take(end_ns);
    errno = error;
    if (!is_taken) return false;
  }
  held_in_ = generation();
  enter_acquired();
  return true;
}

void AnyLock::release() {
  if (!is_acquired_here()) {
    throw Error(Status::invalid, "this " + std::string(traits_.name) +
                                     " lock was not acquired here: the thread that has acquired it "
                                     "releases it, in the same section");
  }
  if (held_in_ == generation()) {
    run_deferred();
    leave_acquired();
    give_acquired();
  } else {
    leave_acquired();  // a fork's child
  }
  send_kept_posts();
}

/// Where the thread's list of levels has it, if it was acquired in the innermost section.
Level** AnyLock::acquired_here() const noexcept {
  Level** at = &this_thread.outer;
  while (*at != nullptr && *at != &held_ && (*at)->lock != nullptr && *at == &(*at)->lock->held_) {
    at = &(*at)->outer;
  }
  return *at == &held_ ? at : nullptr;
}

void AnyLock::enter_acquired() noexcept {
  Thread& t = this_thread;
  t.quick = 0;  // the short ways are for threads without a lock
  held_ = {this, std::exchange(t.outer, &held_), t.inside != nullptr};
  if (!held_.in_section) return;
  ++t.todo;  // what the section's end looks for
  if (t.serving == nullptr) Inside::outermost()->look_after_section();  // as keep_post()
}

void AnyLock::leave_acquired() noexcept {
  *acquired_here() = held_.outer;
  if (held_.in_section) --this_thread.todo;
}

bool AnyLock::try_take(bool) {
  throw Error(Status::unsupported,
              std::string(traits_.name) +
                  ": no thread takes this lock for itself; use auto, rcl, pthread-mutex, "
                  "phase-fair, mcs, ticket or cas-spin, or execute sections only");
}

/// Out of turn: who stands in line cannot leave.
bool AnyLock::wait_to_take(std::int64_t end_ns) {
  if (end_ns == WaitPolicy::forever) return take_again();
  constexpr std::int64_t longest_nap_ns = 1'000'000;
  for (std::int64_t nap_ns = 1000;; nap_ns = std::min(2 * nap_ns, longest_nap_ns)) {
    const std::int64_t left_ns = end_ns - now_ns();
    if (left_ns <= 0) return false;
    const timespec nap{0, std::min(nap_ns, left_ns)};
    nanosleep(&nap, nullptr);
    if (try_take(true)) return true;
  }
}

}  // namespace muster::delegation
