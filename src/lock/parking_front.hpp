// SPDX-License-Identifier: BSD-3-Clause
// Who may be first at a mutex (lock/parking.hpp): one at a time. The others sleep until it leaves.
// It protects no data, so nothing is ordered by it.
//
// Cost: an update to come and one to leave; a sleep and a wake-up for each who finds another there.
// Source: Drepper, "Futexes are tricky", 2004 (mutex2).
//
// The machine M is one whose participants sleep on a cell. Beside load, store, exchange,
// compare_exchange and await it has
//
//   m.poll(cell, pred)   looks for a while; whether it has come to hold
//   m.park(cell, seen)   sleeps unless the cell holds something else; may wake for no reason;
//                        false: the time is over
//   m.unpark(cell)       wakes one that sleeps there; only the cell's address is used
//   m.is_overdue()       whether it was asked for the first time too long ago
//
// Invariants:
// 1. It is free, taken, or slept_on: taken, and somebody may sleep on it. Who has slept takes it as
//    slept_on, for there may be others: so a wake-up is never lost.
// 2. One with another mark than ours was taken in the process that we were forked from: it is free.
#pragma once

#include "lock/shape.hpp"

namespace muster::locks {

template <class M>
class ParkingFront {
 public:
  ParkingFront(typename M::Cells cells, Word mark) : cells_(cells), mark_(mark) {}

  /// False: the time is over.
  bool come(M& m) const {
    Word seen = free;
    if (m.compare_exchange(front(), seen, mark_ | taken, relaxed)) return true;
    for (;;) {
      const Word was = m.exchange(front(), mark_ | slept_on, relaxed);
      if (was != (mark_ | taken) && was != (mark_ | slept_on)) return true;
      if (!m.park(front(), mark_ | slept_on)) return false;
    }
  }
  /// True: somebody is to be woken.
  bool leave(M& m) const { return m.exchange(front(), free, relaxed) == (mark_ | slept_on); }
  void wake(M& m) const { m.unpark(front()); }

 private:
  static constexpr Word free = 0;
  static constexpr Word taken = 1;
  static constexpr Word slept_on = 2;

  auto& front() const { return cells_.global(1); }

  typename M::Cells cells_;
  Word mark_;
};

}  // namespace muster::locks
