// SPDX-License-Identifier: BSD-3-Clause
// The mutex of programs about servers, seats and conditions: none of its orders is to be weakened.
#pragma once

#include <type_traits>

#include "check/checked.hpp"

namespace muster::check {

struct TicketMutex {
  Checked::Cell drawn;
  Checked::Cell turn;

  /// The turn, for unlock().
  Word lock(Thread& thread) const {
    const Word mine = thread.fetch_add(drawn.location, 1, Ordering::relaxed);
    thread.await(turn.location, Predicate(equals(mine)), Ordering::acquire);
    return mine;
  }
  void unlock(Thread& thread, Word mine) const {
    thread.store(turn.location, mine + 1, Ordering::release);
  }
};

/// body(), then leave(); what body() returned. If it throws, the execution is over.
template <class Body, class Leave>
auto then_leave(Body body, Leave leave) {
  if constexpr (std::is_void_v<decltype(body())>) {
    body();
    leave();
  } else {
    const auto result = body();
    leave();
    return result;
  }
}

}  // namespace muster::check
