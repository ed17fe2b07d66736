// SPDX-License-Identifier: BSD-3-Clause
// DSM-Synch: CC-Synch for machines on which a client should wait in memory of its own. Slots do not
// change hands: each client has two and uses them in turn, and the list is MCS's.
//
// Cost: an exchange and two or three line transfers a section; while one client is alone, the
// exchange and a compare-exchange.
// Source: Fatourou and Kallimanis, PPoPP 2012, algorithm 2 (DSM-Synch).
//
// Invariants:
// 1. The tail is 0 when nobody is in the list; who finds it so combines.
// 2. A client returns to a slot only after its other one has been through the list, and that was
//    behind this one: so the combiner is done with this one's link.
#pragma once

#include "lock/hints.hpp"
#include "lock/shape.hpp"

namespace muster::locks {

template <LockMachine M>
class DsmSynch : public Combining<DsmSynch<M>> {
 public:
  static constexpr Traits traits{"dsm-synch", Style::combining, true, "three",
                                 "Fatourou and Kallimanis 2012, algorithm 2"};

  struct Ticket {
    unsigned client;
    unsigned turn = 0;
    Word before = 0;  ///< who was in the list before it; 0: nobody
    Word slot() const { return 2 * client + turn; }
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 1, .slots = 2 * shape.clients, .cells_per_slot = 2};
  }
  DsmSynch(const Shape& shape, typename M::Cells cells) : limit_(shape.limit), cells_(cells) {}
  Ticket ticket(unsigned client) const { return {.client = client}; }

  bool take(M& m, Ticket& t) const {
    t.turn ^= 1;
    const Word slot = t.slot();
    m.store_unawaited(state(slot), waiting);  // both before the exchange releases them
    m.store_unawaited(link(slot), 0);
    t.before =
        m.exchange_unawaited(tail(), slot + 1, acq_rel);  // pairs with itself, with the exits
    return t.before == 0;
  }
  bool delegate(M& m, Ticket& t, auto& work) const {
    const Word slot = t.slot();
    work.put(m, slot);
    m.store(link(t.before - 1), slot + 1, release);  // pairs with the combiner's loads
    if (!m.await(state(slot), at_least(head), acquire, Awaited::combiner))
      return false;  // pairs with its stores
    if (m.load(state(slot), relaxed) == done) return true;
    work.run_own(m);
    return serve(m, t, work);
  }
  bool give(M& m, Ticket& t) const {
    Word mine = t.slot() + 1;
    return m.load(link(t.slot()), relaxed) == 0 &&
           m.compare_exchange(tail(), mine, 0, release);  // pairs with take's exchange
  }
  bool serve(M& m, Ticket& t, auto& work) const {
    const Word own = t.slot();
    Word slot = own;
    for (unsigned executed = 1;; ++executed) {
      Word next = m.load(link(slot), acquire);  // pairs with the client's store
      if (slot != own) {
        m.store(state(slot), done, release);  // pairs with its client's await
      }
      if (next == 0) {
        Word mine = slot + 1;
        if (m.compare_exchange(tail(), mine, 0, release)) return true;  // pairs with the exchange
        if (!m.await(link(slot), at_least(1), acquire)) return false;   // as the load above
        next = m.load(link(slot), relaxed);
      }
      slot = next - 1;
      if (executed >= limit_) break;
      work.run(m, slot);
    }
    m.store(state(slot), head, release);  // pairs with the next combiner's await
    return true;
  }

 private:
  static constexpr Word waiting = ~Word{0};
  static constexpr Word head = 0;
  static constexpr Word done = 1;

  auto& tail() const { return cells_.global(0); }
  auto& state(Word slot) const { return cells_.of(slot, 0); }
  auto& link(Word slot) const { return cells_.of(slot, 1); }

  unsigned limit_;
  typename M::Cells cells_;
};

}  // namespace muster::locks
