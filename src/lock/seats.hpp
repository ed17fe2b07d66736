// SPDX-License-Identifier: BSD-3-Clause
// Which clients there are. A thread that uses locks has *seats*, the lowest numbers that are free,
// and gives them back when it ends; its requests may still be pending. A seat is *used* while a
// thread has it, or requests are pending there: executors look at these alone, not at as many as
// there once were threads.
//
// A template over a machine with a mutex. By who has that, of each word of `Bits`:
//   taken(word), set_taken(word, bits)   plain
//   used(word), set_used(word, bits)     relaxed; executors load it at any time
// Source: ours.
//
// Invariant: a request is posted in a seat that is used, and that stays so until it is executed.
// So a server that looks at these once it is announced (bell.hpp) misses none.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>

#include "machine/crew_machine.hpp"

namespace muster::locks {

template <class M>
struct Seats {
  static_assert(MutualMachine<M>);
  using Bits = typename M::Bits;
  static constexpr unsigned per_word = std::numeric_limits<Bits>::digits;

  typename M::Mutex mutex;

  /// The lowest one below `end` that is free, from here on the caller's; `end`: there is none. One
  /// without requests comes first: those that others have left may wait for the caller.
  unsigned take(M& m, unsigned end) {
    return m.within(mutex, [&] {
      unsigned seat = lowest(end, [&](unsigned word) { return m.used(word); });
      if (seat == end) seat = lowest(end, [&](unsigned word) { return m.taken(word); });
      if (seat != end) hold(m, seat);
      return seat;
    });
  }

  /// By a thread that ends, of all its seats, `own(0)` to `own(count - 1)`. Those below `end` that
  /// nobody has are used no longer, by whomever they were left, unless `is_pending(seat)`.
  void give_back(M& m, unsigned count, auto own, unsigned end, auto is_pending) {
    m.within(mutex, [&] {
      for (unsigned i = 0; i < count; ++i) {
        const unsigned word = own(i) / per_word;
        m.set_taken(word, m.taken(word) & ~bit(own(i)));
      }
      for (unsigned word = 0; word * per_word < end; ++word) {
        for (Bits left = m.used(word) & ~m.taken(word); left != 0; left &= left - 1) {
          const unsigned seat = word * per_word + static_cast<unsigned>(std::countr_zero(left));
          if (!is_pending(seat)) m.set_used(word, m.used(word) & ~bit(seat));
        }
      }
    });
  }

  /// With the mutex, or alone: it is the caller's.
  static void hold(M& m, unsigned seat) {
    const unsigned word = seat / per_word;
    m.set_taken(word, m.taken(word) | bit(seat));
    m.set_used(word, m.used(word) | bit(seat));
  }

  /// The first used one from `from` on, of those below `end`; else `end`.
  static unsigned next(M& m, unsigned from, unsigned end) {
    if (from >= end) return end;
    unsigned word = from / per_word;
    Bits bits = m.used(word) >> from % per_word << from % per_word;
    while (bits == 0) {
      if (++word * per_word >= end) return end;
      bits = m.used(word);
    }
    const unsigned seat = word * per_word + static_cast<unsigned>(std::countr_zero(bits));
    return seat < end ? seat : end;
  }

 private:
  static Bits bit(unsigned seat) { return Bits{1} << seat % per_word; }
  /// The lowest one below `end` of which the bit is 0; else `end`.
  static unsigned lowest(unsigned end, auto bits_of) {
    for (unsigned word = 0; word * per_word < end; ++word) {
      const auto at = static_cast<unsigned>(std::countr_one(Bits{bits_of(word)}));
      if (at < per_word) return std::min(word * per_word + at, end);
    }
    return end;
  }
};

}  // namespace muster::locks
