// SPDX-License-Identifier: BSD-3-Clause
// How a server's thread executes a section inside one that it executes for a client. Another server
// gets a request, as from any client. But where its own serves that lock too, or nobody does, it
// takes the lock itself. Either way it looks for a while; if that was not enough, a spare takes
// over until it is done: what it waits for may wait for its own server.
//
// Source: ours.
//
// Invariants:
// 1. Who waits for long has stepped aside.
// 2. It executes nobody else's requests meanwhile: these may need a lock that it has.
#pragma once

#include "lock/auto.hpp"

namespace muster::locks {

/// `posts`: another server serves the lock. What only the thread can do:
///   is_soon(cell)   whether the cell is 0, or becomes so soon; acquires
///   aside(wait)     wait(), with a spare at work
template <LockMachine M>
void execute_nested(M& m, const Auto<M>& lock, typename Auto<M>::Ring& ring, Habit& h, auto& work,
                    bool posts, auto is_soon, auto aside) {
  if (!posts) {
    if (!is_soon(*lock.desk().held) || !lock.take(m)) aside([&] { lock.take_in_turn(m); });
    work.run_own(m);
    lock.give(m);
    ++h.inlined;
    return;
  }
  typename M::Cell* const entry = lock.post(m, ring, work);
  if (entry == nullptr) return;
  if (is_soon(*entry)) {
    lock.desk().rings.has_answer(ring);
    ++h.delegated;
  } else {
    aside([&] { lock.finish(m, ring, h, *entry, work, [] { return false; }); });
  }
}

}  // namespace muster::locks
