// SPDX-License-Identifier: BSD-3-Clause
// Test-and-test-and-set with exponential backoff. One word; whoever exchanges a 0 for a 1 has the
// lock. Unfair: who had it last has its line, and gets it again.
//
// Cost: one line transfer when the lock changes hands, more when several try at once.
// Source: Anderson, IEEE TPDS 1(1), 1990; the test before the set: Rudolph and Segall, ISCA 1984.
//
// Invariants:
// 1. The word is 1 while somebody is inside, else 0.
#pragma once

#include "lock/hints.hpp"
#include "lock/shape.hpp"

namespace muster::locks {

template <LockMachine M>
class CasSpin : public Direct<CasSpin<M>> {
 public:
  static constexpr Traits traits{"cas-spin", Style::direct, false,
                                 "one, and one for each that tries at once",
                                 "Anderson 1990, with exponential backoff"};

  struct Ticket {};

  static Layout layout(const Shape&) {
    return {.global_cells = 1, .slots = 0, .cells_per_slot = 0};
  }
  CasSpin(const Shape&, typename M::Cells cells) : cells_(cells) {}
  Ticket ticket(unsigned) const { return {}; }

  bool acquire(M& m, Ticket&) const {
    Backoff backoff;
    while (m.exchange(word(), 1, muster::acquire) != 0) {  // pairs with the store in release
      backoff.wait(m);
      if (!m.await(word(), equals(0), relaxed)) return false;  // the exchange acquires
    }
    return true;
  }

  bool try_acquire(M& m, Ticket&) const {
    return m.load(word(), relaxed) == 0 &&
           m.exchange(word(), 1, muster::acquire) == 0;  // pairs with release's store
  }

  void release(M& m, Ticket&) const {
    m.store(word(), 0, muster::release);  // pairs with the exchanges above
  }

 private:
  auto& word() const { return cells_.global(0); }

  typename M::Cells cells_;
};

}  // namespace muster::locks
