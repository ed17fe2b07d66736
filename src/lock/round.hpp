// SPDX-License-Identifier: BSD-3-Clause
// A server's round through the rings of many locks: it looks at each client's next request, and
// executes what it finds with the lock that the request names, if nobody else has that.
//
// Cost: a line transfer for each client, none while its line does not change.
// Source: Lozi et al., ACM TOCS 33(4), 2016, section 3.2; locks that others may have are ours.
//
// Invariants:
// 1. The server has one lock at a time, and no other while it tries to take it: it waits for none.
// 2. What it saw without the lock is only why it takes it: Rings::serve() looks again.
#pragma once

#include <utility>

#include "lock/desk.hpp"

namespace muster::locks {

/// `clients`: more than the number of any that has posted. True if a request was executed. `Server`
/// knows the locks, and how requests are:
///   Desk<M> desk(Word lock)
///   bool execute(const Desk<M>&, Word client)  what the client wants next of a lock that it has
///   bool give(const Desk<M>&, Word client)     gives the lock back; false: ends the round
template <Machine M, class Server>
[[gnu::always_inline]] inline bool serve_round(M& m, const Rings<M>& rings,
                                               typename M::Cell& clients, Server server) {
  bool found = false;
  const Word count = m.load(clients, relaxed);  // serve() acquires
  Word next = next_client(m, 0, count);
  const auto fetch_next = [&] {
    if constexpr (requires { m.fetch_to_write(clients); }) {
      if (next < count) m.fetch_to_write(rings.at_last(m, next));
    }
  };
  fetch_next();
  while (next < count) {
    const Word client = std::exchange(next, next_client(m, next + 1, count));
    fetch_next();
    const Word request = rings.pending(m, client);
    if (request == 0) continue;
    const Desk<M> desk = server.desk(Rings<M>::lock_of(request));
    if (!desk.take(m)) continue;
    if (server.execute(desk, client)) found = true;
    if (!server.give(desk, client)) break;
  }
  return found;
}

}  // namespace muster::locks
