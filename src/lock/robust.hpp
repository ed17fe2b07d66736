// SPDX-License-Identifier: BSD-3-Clause
// A lock between processes that outlives its holder. One word says who has it. Who has slept for it
// for long looks whether that one is still there; if not, it takes the lock over, and says so in a
// second word. There are no pointers and no lists, so whatever is written over them, nobody goes
// astray: a word that names nobody is taken over, too.
//
// Cost: two updates while uncontended; one line transfer when it changes hands, and a sleep and a
// wake-up for each who finds it taken for longer than a look.
// Source: the bit of those that sleep: Drepper, "Futexes are tricky", 2004 (mutex2). The machine
// M is a MortalMachine (machine/lock_machine.hpp).
//
// Invariants:
// 1. The word is 0, or names its holder; `sleeps` beside that: somebody may sleep on it. Who has
//    slept takes it with `sleeps`, for there may be others: so no wake-up is lost. One that is
//    woken and dies delays the others until their sleep is over.
// 2. The word is taken from its holder only if that is gone. Then `damaged` is set before it is
//    given: who dies in between has the word, and is taken over from.
// 3. Nobody enters while it is damaged.
// 4. Who finds something else in the word than itself when it gives it leaves that there, and sets
//    `damaged`: others may have been inside. The word is taken over when whom it names is gone.
#pragma once

#include "lock/shape.hpp"
#include "machine/identity.hpp"

namespace muster::locks {

template <class M>
class Robust : public Direct<Robust<M>> {
 public:
  static constexpr Traits traits{"robust", Style::direct, false,
                                 "one, and a context switch for each that sleeps",
                                 "Drepper 2004, mutex2, with the holder's name"};

  struct Ticket {};

  static Layout layout(const Shape&) {
    return {.global_cells = 2, .slots = 0, .cells_per_slot = 0};
  }
  Robust(const Shape&, typename M::Cells cells) : cells_(cells) {}
  Ticket ticket(unsigned) const { return {}; }

  /// False, and then it is not taken: it is damaged, or the client gave up.
  bool acquire(M& m) const {
    return (take(m) || take_soon(m) || take_in_turn(m, false)) && enter(m);
  }
  bool acquire(M& m, Ticket&) const { return acquire(m); }

  /// False, and then it is not taken: it is damaged, or somebody has it, and is not known as gone.
  bool try_acquire(M& m) const { return (take(m) || take_over(m)) && enter(m); }
  bool try_acquire(M& m, Ticket&) const { return try_acquire(m); }

  /// Takes it, also damaged. False: it gave up.
  bool acquire_anyway(M& m) const { return take(m) || take_soon(m) || take_in_turn(m, true); }

  void release(M& m) const {
    Word seen = m.identity();
    auto& held = word();  // whoever takes it may be the last to use this lock
    if (m.compare_exchange(held, seen, 0, muster::release)) return;  // pairs with who takes it
    if (seen == (m.identity() | sleeps) &&
        m.compare_exchange(held, seen, 0, muster::release)) {  // likewise
      return m.unpark(held);
    }
    m.store(damaged(), 1, relaxed);
  }
  void release(M& m, Ticket&) const { release(m); }

  bool is_damaged(M& m) const { return m.load(damaged(), relaxed) != 0; }
  /// By whoever has it, and sets right what it protects.
  void make_whole(M& m) const { m.store(damaged(), 0, relaxed); }

 private:
  static constexpr Word sleeps = number_bits + 1;

  auto& word() const { return cells_.global(0); }
  auto& damaged() const { return cells_.global(1); }

  bool take(M& m) const {
    Word seen = 0;
    return m.compare_exchange(word(), seen, m.identity(), muster::acquire);  // pairs with release
  }
  bool take_soon(M& m) const { return m.poll(word(), equals(0)) && take(m); }
  bool take_over(M& m) const {
    const Word seen = m.load(word(), relaxed);
    return seen != 0 && m.is_gone(seen & ~sleeps) && take_from(m, seen);
  }
  bool take_from(M& m, Word seen) const {
    const Word mine = m.identity() | sleeps;  // it may have left some that sleep
    // stronger: who sees a death sees what came before, who finds nonsense does not
    if (!m.compare_exchange(word(), seen, mine, muster::acquire)) return false;
    m.store(damaged(), 1, relaxed);
    return true;
  }
  bool enter(M& m) const {
    if (!is_damaged(m)) [[likely]]
      return true;
    release(m);
    return false;
  }

  /// False: it gave up, or it is damaged and that is not to be waited for.
  bool take_in_turn(M& m, bool anyway) const {
    Word mine = m.identity();
    for (Word seen = m.load(word(), relaxed);;) {
      if (seen == 0) {
        if (m.compare_exchange(word(), seen, mine, muster::acquire)) return true;  // as in take
      } else if (m.is_gone(seen & ~sleeps)) {
        if (take_from(m, seen)) return true;
        seen = m.load(word(), relaxed);
      } else if ((seen & sleeps) != 0 || m.compare_exchange(word(), seen, seen | sleeps, relaxed)) {
        // Somebody may have it for ever whose name was written there.
        if ((!anyway && is_damaged(m)) || !m.park(word(), seen | sleeps)) return false;
        mine = m.identity() | sleeps;
        seen = m.load(word(), relaxed);
      }
    }
  }

  typename M::Cells cells_;
};

}  // namespace muster::locks
