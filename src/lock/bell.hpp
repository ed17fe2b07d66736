// SPDX-License-Identifier: BSD-3-Clause
// How a server that finds no request goes to sleep, and who posts one wakes it: the handshake of
// wait/sleep.hpp, of which a client pays a compiler's fence and a load of a line in its cache.
//
// Source: ours.
//
// Invariant: a request is in its ring before the sleeper's second look, or its client sees that the
// server is announced, and rings.
#pragma once

#include "lock/rings.hpp"
#include "wait/sleep.hpp"

namespace muster::locks {

/// Whether the server would find anything. `clients`: more than the number of any that has posted.
template <LockMachine M>
bool any_pending(M& m, const Rings<M>& rings, typename M::Cell& clients) {
  const Word count = m.load(clients, relaxed);  // next() acquires
  Word client = m.next_client(0, count);
  while (client < count && rings.next(m, client).request == 0) {
    client = m.next_client(client + 1, count);
  }
  return client < count;
}

template <ParkingLot L>
struct Bell {
  /// After each post; and by who kept a request from the server's sight while it executed another.
  static void ring(L lot, Announcements<typename L::Atom>& all) {
    lot.light_fence();  // pairs with heavy_fence in pass_fence()
    if (lot.peek(all.any_sleepers) != 0) [[unlikely]] {
      lot.add(all.bell, 1);
      lot.unpark_all(all.bell);
    }
  }

  /// By the server: until it is woken, `is_wanted()`, or for a slice of the lot's.
  static void sleep(L lot, Announcements<typename L::Atom>& all, auto is_wanted) {
    sleep_on_bell(lot, all, is_wanted);
  }
};

}  // namespace muster::locks
