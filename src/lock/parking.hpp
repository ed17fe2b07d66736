// SPDX-License-Identifier: BSD-3-Clause
// What every mutex for unmodified programs stands on: one word that is taken and given, on which
// waiters sleep. Who gives it touches nothing of it afterwards, so that the next one may free it.
// Alone it is `spin-then-park`: look for a while, then sleep until woken, unfair.
//
// Cost: one line transfer when it changes hands; a sleep and a wake-up for each who finds it taken
// for longer than the look.
// Source: Drepper, "Futexes are tricky", 2004 (mutex2); the look before the sleep: Karlin, Li,
// Manasse and Owicki, SOSP 1991.
//
// The machine M is one whose participants sleep on a cell. Beside load, store, exchange,
// compare_exchange and await it has
//
//   m.poll(cell, pred)   looks for a while; whether it has come to hold
//   m.park(cell, seen)   sleeps unless the cell holds something else; may wake for no reason;
//                        false: the time is over
//   m.unpark(cell)       wakes one that sleeps there; only the cell's address is used
//
// Invariants:
// 1. The word is `free`, `taken`, or `slept_on`: taken, and somebody may sleep on it.
// 2. Who has slept takes it as `slept_on`, for there may be others. So a wake-up is never lost: the
//    one that got it passes it on, by taking the word or by sleeping on it again.
#pragma once

#include "lock/shape.hpp"

namespace muster::locks {

/// Anything but one word.
struct Differs {
  Word from;
  constexpr bool operator()(Word seen) const noexcept { return seen != from; }
};

template <class M>
class ParkingWord {
 public:
  static constexpr Traits traits{"spin-then-park", Style::direct, false,
                                 "one, and a context switch for each that sleeps",
                                 "Drepper 2004, mutex2; a look first: Karlin et al. 1991"};

  struct Ticket {};

  static constexpr Word free = 0;
  static constexpr Word taken = 1;
  static constexpr Word slept_on = 2;

  static Layout layout(const Shape&) {
    return {.global_cells = 1, .slots = 0, .cells_per_slot = 0};
  }
  ParkingWord(const Shape&, typename M::Cells cells) : cells_(cells) {}
  Ticket ticket(unsigned) const { return {}; }

  bool try_acquire(M& m, Word as = taken) const {
    Word seen = free;
    return m.compare_exchange(word(), seen, as, muster::acquire);  // pairs with release
  }

  /// Takes it if it comes free while it looks, and nobody is faster too often.
  bool acquire_soon(M& m, Word as = taken) const {
    for (int tries = 0; tries < tries_max && m.poll(word(), equals(free)); ++tries) {
      if (try_acquire(m, as)) return true;
    }
    return false;
  }

  /// Takes it, or says that somebody sleeps on it.
  bool acquire_or_announce(M& m) const {
    return m.exchange(word(), slept_on, muster::acquire) == free;  // pairs with release
  }
  /// False: the time is over.
  bool sleep(M& m) const { return m.park(word(), slept_on); }

  bool acquire(M& m) const {
    if (try_acquire(m) || acquire_soon(m)) return true;
    while (!acquire_or_announce(m)) {
      if (!sleep(m)) return false;
    }
    return true;
  }
  bool acquire(M& m, Ticket&) const { return acquire(m); }

  void release(M& m) const {
    const Word was = m.exchange(word(), free, muster::release);  // pairs with both that take it
    if (was == slept_on) m.unpark(word());
  }

 private:
  static constexpr int tries_max = 4;

  auto& word() const { return cells_.global(0); }

  typename M::Cells cells_;
};

}  // namespace muster::locks
