// SPDX-License-Identifier: BSD-3-Clause
// Oyama's delegation: one word says whether the lock is free, taken, or taken with a list of
// requests. Who finds it taken pushes a request and waits; the holder detaches the list and
// executes it, until it finds none and frees the lock.
//
// Cost: a compare-exchange of the one word a section, which all fight for; last come, first served.
// Source: Oyama, Taura and Yonezawa, PDSIA 1999.
//
// Invariants:
// 1. The word is 0 (free), 1 (taken), or the top request's slot plus 2 (taken).
// 2. A pushed request is its holder's until it is marked done; only then may its client push again.
#pragma once

#include "lock/shape.hpp"

namespace muster::locks {

template <Machine M>
class Oyama {
 public:
  static constexpr Traits traits{"oyama", Style::combining, false,
                                 "two, and one for each that tries at once",
                                 "Oyama, Taura and Yonezawa 1999"};

  struct Ticket {
    unsigned slot;
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 1, .slots = shape.clients, .cells_per_slot = 2};
  }
  Oyama(const Shape&, typename M::Cells cells) : cells_(cells) {}
  Ticket ticket(unsigned client) const { return {client}; }

  template <class Work>
  bool execute(M& m, Ticket& t, Work& work) const {
    Word seen = 0;
    Backoff backoff;
    if (m.compare_exchange(top(), seen, taken, acquire)) {  // pairs with the exit of drain
      work.run_own(m);
      drain(m, work);
      return true;
    }
    work.put(m, t.slot);
    m.store(pending(t.slot), 1, relaxed);  // before the compare-exchange releases it
    for (;;) {
      if (seen == 0) {
        if (m.compare_exchange(top(), seen, taken, acquire)) {  // as above
          work.run_own(m);
          drain(m, work);
          return true;
        }
        continue;
      }
      m.store(below(t.slot), seen, relaxed);                                // likewise
      if (m.compare_exchange(top(), seen, t.slot + first, release)) break;  // pairs with drain
      backoff.wait(m);
    }
    return m.await(pending(t.slot), equals(0), acquire);  // pairs with the store in drain
  }

 private:
  static constexpr Word taken = 1;
  static constexpr Word first = 2;

  template <class Work>
  void drain(M& m, Work& work) const {
    for (;;) {
      Word seen = taken;
      if (m.compare_exchange(top(), seen, 0, release)) return;  // pairs with the next holder's
      Word request = m.exchange(top(), taken, acquire);         // pairs with each push on the way
      while (request != taken) {
        const unsigned slot = request - first;
        request = m.load(below(slot), relaxed);  // before it is marked done: invariant 2
        work.run(m, slot);
        m.store(pending(slot), 0, release);  // pairs with its client's await
      }
    }
  }

  auto& top() const { return cells_.global(0); }
  auto& pending(unsigned slot) const { return cells_.of(slot, 0); }
  auto& below(unsigned slot) const { return cells_.of(slot, 1); }

  typename M::Cells cells_;
};

}  // namespace muster::locks
