// SPDX-License-Identifier: BSD-3-Clause
// Ticket lock: take a number, wait until it is served. First come, first served, so a client that
// is not running when its turn comes holds up all others.
//
// Cost: an atomic addition, and each release is seen by all that wait: O(P) transfers a section.
// Source: Mellor-Crummey and Scott, ACM TOCS 9(1), 1991, algorithm 2.
//
// Invariants:
// 1. `serving` is the number of whoever is inside, or the next to be; it grows by one each time.
// 2. Numbers are handed out once, on a circle of 2^32: more than there can be clients.
#pragma once

#include "lock/shape.hpp"

namespace muster::locks {

template <LockMachine M>
class TicketLock : public Direct<TicketLock<M>> {
 public:
  static constexpr Traits traits{"ticket", Style::direct, true, "one for each that waits",
                                 "Mellor-Crummey and Scott 1991, algorithm 2"};

  struct Ticket {
    Word number = 0;
  };

  static Layout layout(const Shape&) {
    return {.global_cells = 2, .slots = 0, .cells_per_slot = 0};
  }
  TicketLock(const Shape&, typename M::Cells cells) : cells_(cells) {}
  Ticket ticket(unsigned) const { return {}; }

  bool acquire(M& m, Ticket& t) const {
    t.number = m.fetch_add(next(), 1, relaxed);
    return m.await(serving(), equals(t.number), muster::acquire);  // pairs with release's store
  }

  /// If the number to be drawn next is the one that is served, nobody is inside.
  bool try_acquire(M& m, Ticket& t) const {
    t.number = m.load(serving(), muster::acquire);  // pairs with release's store
    Word drawn = t.number;
    return m.compare_exchange(next(), drawn, t.number + 1, relaxed);
  }

  void release(M& m, Ticket& t) const {
    m.store(serving(), t.number + 1, muster::release);  // pairs with the next one's await or load
  }

 private:
  auto& next() const { return cells_.global(0); }
  auto& serving() const { return cells_.global(1); }

  typename M::Cells cells_;
};

}  // namespace muster::locks
