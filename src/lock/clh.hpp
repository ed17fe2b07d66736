// SPDX-License-Identifier: BSD-3-Clause
// CLH queue lock. The tail names the word of the last client; who comes exchanges its own for it,
// waits until that one is clear, and takes it along for the next time. Nobody writes to a
// successor.
//
// Cost: two line transfers a section, whatever the number of those that wait.
// Source: Craig, University of Washington TR 93-02-02; Magnusson, Landin and Hagersten, IPPS 1994.
//
// Invariants:
// 1. There is one word more than there are clients; each belongs to a client or is the tail's.
// 2. A word is 1 from before its owner enters the list until it has left the section.
#pragma once

#include "lock/shape.hpp"

namespace muster::locks {

template <LockMachine M>
class Clh : public Direct<Clh<M>> {
 public:
  static constexpr Traits traits{"clh", Style::direct, true, "two",
                                 "Craig 1993; Magnusson, Landin and Hagersten 1994"};

  struct Ticket {
    Word mine;
    Word predecessor = 0;
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 1, .slots = shape.clients + 1, .cells_per_slot = 1};
  }
  Clh(const Shape&, typename M::Cells cells) : cells_(cells) {}
  /// Word 0 is the tail's at first, and clear.
  Ticket ticket(unsigned client) const { return {.mine = client + 1}; }

  bool acquire(M& m, Ticket& t) const {
    m.store(busy(t.mine), 1, relaxed);                    // before the exchange releases it
    t.predecessor = m.exchange(tail(), t.mine, acq_rel);  // pairs with itself: the word is busy
    return m.await(busy(t.predecessor), equals(0), muster::acquire);  // pairs with release's store
  }

  void release(M& m, Ticket& t) const {
    m.store(busy(t.mine), 0, muster::release);  // pairs with the successor's await
    t.mine = t.predecessor;
  }

 private:
  auto& tail() const { return cells_.global(0); }
  auto& busy(Word word) const { return cells_.of(word, 0); }

  typename M::Cells cells_;
};

}  // namespace muster::locks
