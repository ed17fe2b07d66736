// SPDX-License-Identifier: BSD-3-Clause
// What every mutex for unmodified programs stands on: one word that is taken and given. Who comes
// takes it if it is free, whoever waits: who comes back soon has the data in its cache, and a mutex
// that waits for a sleeper stands idle. Of those that wait one is *first*: it alone sleeps on the
// word. If it has been passed over for too long it claims the word, which is then given to nobody
// else. Who gives it touches nothing of it afterwards, so that the next one may free it.
// Alone it is `spin-then-park`: the front (lock/parking_front.hpp) says who is first, unfairly.
//
// Cost: one line transfer when it changes hands; a sleep and a wake-up for each who finds it taken
// for longer than a look.
// Source: a claim by who was passed over: Linux's mutex (kernel/locking/mutex.c, Zijlstra 2016).
// The look before the sleep: Karlin, Li, Manasse and Owicki, SOSP 1991.
//
// Invariants:
// 1. The word is free, or taken, or claimed, which only the first one takes. While it is taken
//    there may stand in it what the first one wants: its claim, and to be woken; and what the
//    holder owes: wake-ups. It pays when it has given the word: who wakes sooner holds it up.
// 2. Only updates change the word, so no claim outlives the place of who made it.
// 3. A claim with another mark than ours was left in the process that we were forked from.
#pragma once

#include "lock/parking_front.hpp"

namespace muster::locks {

template <class M>
class ParkingWord {
 public:
  static constexpr Traits traits{"spin-then-park", Style::direct, false,
                                 "one, and a context switch for each that sleeps",
                                 "Drepper 2004, mutex2; a look first: Karlin et al. 1991"};

  struct Ticket {};

  static Layout layout(const Shape&) {
    return {.global_cells = 2, .slots = 0, .cells_per_slot = 0};
  }
  /// `mark`: of this process, in the upper half; 0 outside of forked processes.
  ParkingWord(const Shape&, typename M::Cells cells, Word mark = 0) : cells_(cells), mark_(mark) {}
  Ticket ticket(unsigned) const { return {}; }

  bool try_acquire(M& m) const {
    Word seen = free;
    return m.compare_exchange(word(), seen, taken, muster::acquire);  // pairs with release
  }
  /// Takes it where it was given to the first one of another process, which is not in this one.
  bool try_acquire_left(M& m) const {
    Word seen = m.load(word(), relaxed);
    return IsGiven{}(seen) && seen != claim() &&
           m.compare_exchange(word(), seen, taken, muster::acquire);  // as in try_acquire
  }
  /// Takes it if it comes free while it looks.
  bool acquire_soon(M& m) const { return m.poll(word(), equals(free)) && try_acquire(m); }
  /// False: the time is over.
  bool acquire_in_turn(M& m) const {
    const ParkingFront<M> front = this->front();
    if (!front.come(m)) return false;
    const bool in_time = acquire_as_first(m);
    if (front.leave(m)) in_time ? owe(m, owes_front) : front.wake(m);
    return in_time;
  }
  bool acquire(M& m) const { return try_acquire(m) || acquire_soon(m) || acquire_in_turn(m); }
  bool acquire(M& m, Ticket&) const { return acquire(m); }

  void release(M& m) const {
    Word seen = taken;
    if (m.compare_exchange(word(), seen, free, muster::release)) return;  // pairs with all three
    release_to_others(m, seen);                                           // that take it
  }

  /// By the holder: once it has given the word it wakes the one that sleeps on a queue's cell.
  void owe_wake_up(M& m, Word client) const {
    m.store(creditor(), client, relaxed);
    owe(m, owes_client);
  }

 private:
  static constexpr Word free = 0;
  static constexpr Word taken = 1;
  static constexpr Word sleeps = 2;  ///< the first one
  static constexpr Word claimed = 4;
  static constexpr Word owes_front = 8;
  static constexpr Word owes_client = 16;
  static constexpr Word holders = taken | owes_front | owes_client;

  struct IsGiven {
    constexpr bool operator()(Word seen) const noexcept { return (seen & taken) == 0; }
  };

  auto& word() const { return cells_.global(0); }
  auto& creditor() const { return cells_.global(6); }  ///< the holder's

  ParkingFront<M> front() const { return {cells_, mark_}; }
  Word claim() const { return mark_ | claimed; }

  void release_to_others(M& m, Word seen) const {
    const Word client = (seen & owes_client) != 0 ? m.load(creditor(), relaxed) : 0;
    Word left = free;
    do {
      left = (seen & ~(holders | sleeps)) == claim() ? claim() : free;
    } while (!m.compare_exchange(word(), seen, left, muster::release));  // as in release
    if ((seen & sleeps) != 0) m.unpark(word());
    if ((seen & owes_front) != 0) front().wake(m);
    if (client != 0) m.unpark(bed(client));
  }
  void owe(M& m, Word what) const {
    for (Word seen = m.load(word(), relaxed);
         !m.compare_exchange(word(), seen, seen | what, relaxed);) {
    }
  }

  bool acquire_as_first(M& m) const {
    Word mine = 0;
    for (Word seen = m.load(word(), relaxed);;) {
      const Word desired = (seen & holders) | mine | sleeps;
      if (IsGiven{}(seen)) {
        if (m.compare_exchange(word(), seen, taken, muster::acquire)) return true;
      } else if (mine == 0 && m.is_overdue()) {
        if (!m.compare_exchange(word(), seen, (seen & holders) | claim(), relaxed)) continue;
        mine = claim();
        m.poll(word(), IsGiven{});  // it is next: whoever gives it waits for it
        seen = m.load(word(), relaxed);
      } else if (m.compare_exchange(word(), seen, desired, relaxed)) {
        if (!m.park(word(), desired)) return acquire_or_leave(m);
        seen = m.load(word(), relaxed);
      }
    }
  }
  /// Takes it if it is given, else takes back what it has left there.
  bool acquire_or_leave(M& m) const {
    for (Word seen = m.load(word(), relaxed);;) {
      if (IsGiven{}(seen)) {
        if (m.compare_exchange(word(), seen, taken, muster::acquire)) return true;
      } else if (m.compare_exchange(word(), seen, seen & holders, relaxed)) {
        return false;
      }
    }
  }

  /// What a client of a queue sleeps on.
  auto& bed(Word client) const { return cells_.of(client, 2); }

  typename M::Cells cells_;
  Word mark_;
};

}  // namespace muster::locks
