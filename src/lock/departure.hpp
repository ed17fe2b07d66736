// SPDX-License-Identifier: BSD-3-Clause
// Who executes a request whose client does not wait, when the server leaves: an asymmetric Dekker
// handshake, as in wait/sleep.hpp. The client posts, passes the *light* fence and looks whether
// a server is there; the server takes its word back, issues the *heavy* fence and looks at what is
// posted. One of the two sees the other.
//
// Each is a template over a lot `L` with the fences and the peek() of a ParkingLot, and
//   swap_in(atom, word)   acquires and releases
// Source: ours; the fences as there.
//
// Invariant: a request is posted before the server's last look, or its client sees that the server
// has left, and executes it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "lock/doze.hpp"
#include "machine/lock_machine.hpp"

namespace muster::locks {

/// Requests that were pending at one moment, by their entries.
template <LockMachine M>
using Pending = std::vector<std::pair<const typename M::Cell*, Word>>;

/// After a post: false if the client has to see to its request itself.
bool is_left_to_server(auto&& lot, const auto& server) {
  lot.light_fence();  // pairs with the heavy one below
  return lot.peek(server) != 0;
}

/// By who makes the server leave: from here on clients see to their requests themselves. What was
/// posted before is the server's: until that is executed, `wait()` between two looks. It is `last`,
/// whose room is the caller's care: once the server leaves, nothing may fail.
/// `each_entry(look)`: of all clients.
template <LockMachine M, class L, class Atom, class EachEntry, class Wait>
void depart(M& m, L lot, Atom& server, EachEntry each_entry, Pending<M>& last, Wait wait) {
  // Without its client's mark (doze.hpp).
  const auto request_in = [&m](const typename M::Cell& entry) {
    return m.load(entry, acquire) & ~roused;  // pairs with whoever has executed it
  };
  lot.swap_in(server, 0);
  lot.heavy_fence();  // pairs with the light one above, and that behind each store
  last.clear();
  each_entry([&](const typename M::Cell& entry) {
    if (const Word request = request_in(entry); request != 0) last.emplace_back(&entry, request);
  });
  // Each has a number: whatever else is there came later.
  const auto is_pending = [&](const auto& known) {
    return request_in(*known.first) == known.second;
  };
  while (std::any_of(last.begin(), last.end(), is_pending)) wait();
}

}  // namespace muster::locks
