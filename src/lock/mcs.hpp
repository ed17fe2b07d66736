// SPDX-License-Identifier: BSD-3-Clause
// MCS queue lock. Clients form a list; each waits on a word of its own, which its predecessor
// clears. The tail names the last one, 0 an empty list; links are client numbers plus one.
//
// Cost: two line transfers a section, whatever the number of those that wait.
// Source: Mellor-Crummey and Scott, ACM TOCS 9(1), 1991, algorithm 5.
//
// Invariants:
// 1. Who finds the tail 0 has the lock; everyone else gets it from its predecessor in the list.
// 2. A client's two words are written by its predecessor and its successor, and by itself only
//    while it is in no list.
#pragma once

#include "lock/shape.hpp"

namespace muster::locks {

template <LockMachine M>
class Mcs : public Direct<Mcs<M>> {
 public:
  static constexpr Traits traits{"mcs", Style::direct, true, "two",
                                 "Mellor-Crummey and Scott 1991, algorithm 5"};

  struct Ticket {
    unsigned client;
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 1, .slots = shape.clients, .cells_per_slot = 2};
  }
  Mcs(const Shape&, typename M::Cells cells) : cells_(cells) {}
  Ticket ticket(unsigned client) const { return {client}; }

  bool acquire(M& m, Ticket& t) const {
    m.store(next(t.client), 0, relaxed);  // both before the exchange releases them
    m.store(waiting(t.client), 1, relaxed);
    const Word predecessor = m.exchange(tail(), t.client + 1, acq_rel);  // pairs with itself, and
    if (predecessor == 0) return true;                                   // with release's exit
    m.store(next(predecessor - 1), t.client + 1, muster::release);  // pairs with the loads below
    return m.await(waiting(t.client), equals(0), muster::acquire);  // pairs with release's store
  }

  bool try_acquire(M& m, Ticket& t) const {
    m.store(next(t.client), 0, relaxed);
    Word nobody = 0;
    return m.compare_exchange(tail(), nobody, t.client + 1, acq_rel);  // as acquire's exchange
  }

  void release(M& m, Ticket& t) const {
    Word successor = m.load(next(t.client), muster::acquire);  // pairs with acquire's store
    if (successor == 0) {
      Word mine = t.client + 1;
      if (m.compare_exchange(tail(), mine, 0, muster::release)) return;  // pairs with the exchange
      if (!m.await(next(t.client), at_least(1), muster::acquire)) return;  // as the load above
      successor = m.load(next(t.client), relaxed);
    }
    m.store(waiting(successor - 1), 0, muster::release);  // pairs with acquire's await
  }

 private:
  auto& tail() const { return cells_.global(0); }
  auto& waiting(unsigned client) const { return cells_.of(client, 0); }
  auto& next(unsigned client) const { return cells_.of(client, 1); }

  typename M::Cells cells_;
};

}  // namespace muster::locks
