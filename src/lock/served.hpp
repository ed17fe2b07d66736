// SPDX-License-Identifier: BSD-3-Clause
// What a client's `served` says, in its ring (rings.hpp): whose turn it is there.
#pragma once

#include "machine/lock_machine.hpp"

namespace muster::locks {

struct Served {
  Word executed;   ///< requests; wraps after a multiple of all numbers that requests have
  unsigned place;  ///< of the last of these, or of the one being executed
  bool is_busy;    ///< the next one is being executed

  Served(Word count, unsigned at, bool busy) : executed(count), place(at), is_busy(busy) {}
  explicit Served(Word word)
      : executed(word >> (place_bits + 1)),
        place(word >> 1 & (depth_max - 1)),
        is_busy((word & 1) != 0) {}

  Word word() const { return least_after(executed) | place << 1 | (is_busy ? 1 : 0); }
  /// What the word is at least when so many requests are executed.
  static constexpr Word least_after(Word requests) { return requests << (place_bits + 1); }

  static constexpr unsigned place_bits = 4;
  static constexpr unsigned depth_max = 1U << place_bits;
};

/// While the next one is being executed. False if the wait gave up.
template <LockMachine M>
bool await_executed(M& m, typename M::Cell& served) {
  const Served so_far(m.load(served, relaxed));  // who looks for the next one acquires
  const Word least = Served::least_after(so_far.executed + 1);
  return !so_far.is_busy || m.await(served, at_least(least), relaxed);
}

}  // namespace muster::locks
