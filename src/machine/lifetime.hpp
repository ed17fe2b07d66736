// SPDX-License-Identifier: BSD-3-Clause
// How a participant's wait begins and ends, how a barrier breaks for all, and when its memory may
// go. Each rank has a phase, a word that it alone writes: even outside, odd inside a wait; a
// barrier has one sticky word, `broken`.
//
// Each function is a template over a port `M` with load, store, compare_exchange and await, as a
// Machine has them, on atoms that nobody sleeps on: on hardware std::atomic, in the checker its
// cells. So the checker runs this text.
//
// Invariants:
// 1. A rank's phase is odd from before its first access of an episode until after its last one.
// 2. Whoever has seen the rank outside again comes after all that it did: the memory may go.
// 3. `broken` leaves 0 once and stays; whoever is told sees what the one that broke it wrote
// before.
#pragma once

#include "machine/machine.hpp"

namespace muster {

constexpr bool is_inside(Word phase) noexcept { return phase % 2 != 0; }

/// A predicate for waits: the rank is outside.
struct Outside {
  constexpr bool operator()(Word phase) const noexcept { return !is_inside(phase); }
};

/// From phase `at`, outside, to the next. False if the barrier is broken.
template <class M, class Atom>
inline bool enter(M& m, const Atom& broken, Atom& phase, Word at) {
  if (m.load(broken, relaxed) != 0) [[unlikely]]
    return false;
  m.store(phase, at + 1, relaxed);  // released by the arrival that follows
  return true;
}

/// From the phase after `at`: the rank's last access of an episode.
template <class M, class Atom>
inline void leave(M& m, Atom& phase, Word at) {
  m.store(phase, at + 2, release);  // pairs with await_left
}

/// Returns once the rank is outside; false if it never will be. By one whose own last wait has
/// returned.
template <class M, class Atom>
inline bool await_left(M& m, Atom& phase) {
  return m.await(phase, Outside{}, acquire);  // pairs with leave
}

/// Breaks a barrier, unless somebody has done so already. `why` is not 0.
template <class M, class Atom>
inline void break_for_all(M& m, Atom& broken, Word why) {
  Word whole = 0;
  m.compare_exchange(broken, whole, why, release);  // pairs with why_broken
}

/// What it was broken with, 0 if it is whole. By whoever was turned away or has given up.
template <class M, class Atom>
inline Word why_broken(M& m, const Atom& broken) {
  return m.load(broken, acquire);  // pairs with break_for_all
}

}  // namespace muster
