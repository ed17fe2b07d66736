// SPDX-License-Identifier: BSD-3-Clause
// The numbers of the locks that share a station's rings (rings.hpp). When a lock ends its number is
// given to another one. Its row stays: who read one of its requests before still tries to take it.
//
// A template over a LockMachine with a mutex, whose linger() is between any two looks.
// Source: ours.
//
// Invariant: when a number is given back, no request names it, and whoever executed the last one
// has done with the lock: it has given back `held`.
#pragma once

#include "lock/rings.hpp"
#include "machine/crew_machine.hpp"

namespace muster::locks {

template <LockMachine M>
struct Numbers {
  static_assert(MutualMachine<M>);
  using Cell = typename M::Cell;
  using Plain = typename M::template Plain<Word>;

  /// What belongs to a number.
  struct Row {
    Cell held;                ///< Desk::held
    Cell wanted;              ///< where clients that wait for the lock say so
    Plain next;               ///< of those given back: as `last`
    alignas(64) Cell dozing;  ///< and that they are about to sleep: on another line, seldom written
  };

  typename M::Mutex mutex;
  Plain last;   ///< 1 + the number given back last; 0: none
  Plain fresh;  ///< the first that no lock has had

  /// Rings<M>::locks_max - 1: there is no other. `row_of(number)`: a number's.
  Word add(M& m, auto row_of) {
    return m.within(mutex, [&] {
      if (const Word known = m.read(last); known != 0) {
        m.write(last, m.read(row_of(known - 1).next));
        return known - 1;
      }
      const Word number = m.read(fresh);
      if (number + 1 < Rings<M>::locks_max) m.write(fresh, number + 1);
      return number;
    });
  }

  /// Until what was posted to the lock is executed. `each_entry(look)`: of all clients that may
  /// have posted to it.
  static void await_executed(M& m, Word number, auto each_entry) {
    each_entry([&](const Cell& entry) {
      const auto is_pending = [&] {
        return Rings<M>::lock_of(m.load(entry, acquire)) == number;  // pairs with execute's store
      };
      for (unsigned looks = 0; is_pending(); ++looks) m.linger(looks);
    });
  }
  /// By who ends the lock, after all that was posted to it.
  void remove(M& m, Word number, Row& row, auto each_entry) {
    await_executed(m, number, each_entry);
    for (unsigned looks = 0; m.load(row.held, acquire) != 0; ++looks) m.linger(looks);
    m.store(row.wanted, 0, relaxed);
    m.within(mutex, [&] {
      m.write(row.next, m.read(last));
      m.write(last, number + 1);
    });
  }
};

}  // namespace muster::locks
