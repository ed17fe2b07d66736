// SPDX-License-Identifier: BSD-3-Clause
// A server's round through the rings of many locks: it looks at each client's next request, and
// executes what it finds with the lock that the request names, if nobody else has that. It keeps
// the lock while the next request names the same one: a core that executes no atomic operation
// between two clients can wait for the lines of both at once.
//
// Cost: a line transfer for each client, none while its line does not change; an exchange of a line
// that is the server's alone unless others take the lock, whenever the lock is another one.
// Source: Lozi et al., ACM TOCS 33(4), 2016, section 3.2; locks that others may have are ours.
//
// Invariants:
// 1. The server has one lock at a time, and none while it takes another: it waits for none.
// 2. What it saw without the lock is only why it takes it: then it looks again.
#pragma once

#include <utility>

#include "lock/desk.hpp"

namespace muster::locks {

/// `clients`: more than the number of any that has posted. True if a request was executed. `Server`
/// knows the locks, and how requests are executed:
///   bool take(Word lock)                        true: it now has the lock
///   bool execute(Word lock, Word client, Next)  that request, and the client's next ones for it;
///                                               false: the lock is to be given back at once
///   bool give(Word lock)                        gives the lock back; false: ends the round
template <Machine M, class Server>
[[gnu::always_inline]] inline bool serve_round(M& m, const Rings<M>& rings,
                                               typename M::Cell& clients, Server&& server) {
  constexpr Word none = Rings<M>::locks_max;
  Word has = none;
  bool found = false;
  const Word count = m.load(clients, relaxed);  // next() acquires
  for (Word client = next_client(m, 0, count); client < count;
       client = next_client(m, client + 1, count)) {
    auto wanted = rings.next(m, client);
    if (wanted.request == 0) continue;
    if (!wanted.is_of(has)) {
      if (has != none && !server.give(std::exchange(has, none))) return found;
      const Word lock = Rings<M>::lock_of(wanted.request);
      if (!server.take(lock)) continue;
      has = lock;
      wanted = rings.next(m, client);
      if (!wanted.is_of(has)) continue;
    }
    found = true;
    if (server.execute(has, client, wanted)) continue;
    if (!server.give(std::exchange(has, none))) return found;
  }
  if (has != none) server.give(has);
  return found;
}

}  // namespace muster::locks
