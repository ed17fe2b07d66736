// SPDX-License-Identifier: BSD-3-Clause
// Central counter with sense reversal. Each participant counts itself in with one atomic addition;
// the last one resets the counter and reverses the global sense, on which all others wait. Nobody
// has a fixed part, so it needs no ranks, splits into arrive and depart, and costs an
// oversubscribed machine no more context switches than there are participants.
//
// Cost: P atomic additions on one line, one after another: O(P).
// Source: Mellor-Crummey and Scott, ACM TOCS 9(1), 1991, algorithm 7;
// `shm-sense-reversing` of [K22].
//
// Invariants:
// 1. Between episodes the counter is 0 and every ticket's sense equals the global one.
// 2. The counter is reset before the sense is reversed, so no arrival of the next episode can
//    precede the reset.
#pragma once

#include "barrier/shape.hpp"

namespace muster {

template <Machine M>
class SenseReversing {
 public:
  static constexpr Traits traits{"sense-reversing", Champion::last_to_arrive, true,
                                 "P atomic additions on one line, in sequence",
                                 "Mellor-Crummey and Scott 1991, algorithm 7"};

  struct Ticket {
    Word sense = 0;
  };

  static Layout layout(const Shape&) { return {.global_cells = 2, .cells_per_rank = 0}; }

  SenseReversing(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants), cells_(cells) {}

  void prepare(M&) const {}
  Ticket ticket(unsigned) const { return {}; }

  bool arrive(M& m, Ticket& t) const {
    t.sense ^= 1;
    // Releases this participant's writes and, read from by the next addition, all earlier ones';
    // the last acquires them all.
    const Word before = m.fetch_add(count(), 1, acq_rel);
    if (before + 1 != participants_) return true;
    if (!m.all_arrived()) return false;
    m.store(count(), 0, relaxed);        // before the release below: invariant 2
    m.store(sense(), t.sense, release);  // pairs with the await in depart
    return true;
  }

  bool depart(M& m, Ticket& t) const {
    return m.await(sense(), equals(t.sense), acquire);  // pairs with the release in arrive
  }

  bool wait(M& m, Ticket& t) const { return arrive(m, t) && depart(m, t); }

 private:
  auto& count() const { return cells_.global(0); }
  auto& sense() const { return cells_.global(1); }

  Word participants_;
  typename M::Cells cells_;
};

}  // namespace muster
