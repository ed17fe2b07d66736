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

#include "lock/hints.hpp"
#include "lock/shape.hpp"

namespace muster::locks {

template <LockMachine M>
class Oyama : public Combining<Oyama<M>> {
 public:
  static constexpr Traits traits{"oyama", Style::combining, false,
                                 "two, and one for each that tries at once",
                                 "Oyama, Taura and Yonezawa 1999"};

  struct Ticket {
    unsigned slot;
    Word seen = 0;  ///< when it tried to take the lock
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 1, .slots = shape.clients, .cells_per_slot = 2};
  }
  Oyama(const Shape&, typename M::Cells cells) : cells_(cells) {}
  Ticket ticket(unsigned client) const { return {.slot = client}; }

  bool take(M& m, Ticket& t) const {
    t.seen = 0;
    return m.compare_exchange(top(), t.seen, taken, acquire);  // pairs with the exits
  }
  bool give(M& m, Ticket&) const {
    Word seen = taken;
    return m.compare_exchange(top(), seen, 0, release);  // pairs with the next holder's
  }
  bool delegate(M& m, Ticket& t, auto& work) const {
    Word seen = t.seen;
    Backoff backoff;
    work.put(m, t.slot);
    m.store(pending(t.slot), 1, relaxed);  // before the compare-exchange releases it
    for (;;) {
      if (seen == 0) {
        if (m.compare_exchange(top(), seen, taken, acquire)) {  // pairs with the exits
          work.run_own(m);
          return give(m, t) || serve(m, t, work);
        }
        continue;
      }
      m.store(below(t.slot), seen, relaxed);                                // likewise
      if (m.compare_exchange(top(), seen, t.slot + first, release)) break;  // pairs with serve
      backoff.wait(m);
    }
    return m.await(pending(t.slot), equals(0), acquire, Awaited::combiner);  // pairs with serve's
  }
  bool serve(M& m, Ticket& t, auto& work) const {
    do {
      Word request = m.exchange(top(), taken, acquire);  // pairs with each push on the way
      while (request != taken) {
        const unsigned slot = request - first;
        request = m.load(below(slot), relaxed);  // before it is marked done: invariant 2
        work.run(m, slot);
        m.store(pending(slot), 0, release);  // pairs with its client's await
      }
    } while (!give(m, t));
    return true;
  }

 private:
  static constexpr Word taken = 1;
  static constexpr Word first = 2;

  auto& top() const { return cells_.global(0); }
  auto& pending(unsigned slot) const { return cells_.of(slot, 0); }
  auto& below(unsigned slot) const { return cells_.of(slot, 1); }

  typename M::Cells cells_;
};

}  // namespace muster::locks
