// SPDX-License-Identifier: BSD-3-Clause
// A server's round through the rings of many locks: it looks at each client's next request, and
// executes what it finds with the lock that the request names, if nobody else has that.
//
// Cost: a line transfer for each client, none while its line does not change; an exchange of a line
// that is the server's alone unless others take the lock, for each client with a request.
// Source: Lozi et al., ACM TOCS 33(4), 2016, section 3.2; locks that others may have are ours.
//
// Invariants:
// 1. The server has one lock at a time, and none while it takes another: it waits for none.
// 2. What it saw without the lock is only why it takes it: then it looks again.
#pragma once

#include "lock/desk.hpp"

namespace muster::locks {

/// `clients`: more than the number of any that has posted. True if a request was executed. `Server`
/// knows the locks, and how requests are executed:
///   bool take(Word lock)                        true: it now has the lock
///   void execute(Word lock, Word client, Next)  that request, and the client's next ones for it
///   bool give(Word lock, Word client)           gives the lock back; false: ends the round
template <Machine M, class Server>
[[gnu::always_inline]] inline bool serve_round(M& m, const Rings<M>& rings,
                                               typename M::Cell& clients, const Server& server) {
  bool found = false;
  const Word count = m.load(clients, relaxed);  // next() acquires
  for (Word client = next_client(m, 0, count); client < count;
       client = next_client(m, client + 1, count)) {
    const auto seen = rings.next(m, client);
    if (seen.request == 0) continue;
    const Word lock = Rings<M>::lock_of(seen.request);
    if (!server.take(lock)) continue;
    const auto wanted = rings.next(m, client);
    if (wanted.is_of(lock)) {
      server.execute(lock, client, wanted);
      found = true;
    }
    if (!server.give(lock, client)) break;
  }
  return found;
}

}  // namespace muster::locks
