// SPDX-License-Identifier: BSD-3-Clause
// A server's round through the rings of many locks: it looks at each client's next request, and
// executes what it finds with the lock that the request names, if nobody else has that. Where the
// server says so it keeps that lock, also for the next rounds, until a request names another one.
//
// Cost: a line transfer for each client, none while its line does not change; an exchange when a
// request names another lock than the one before.
// Source: Lozi et al., ACM TOCS 33(4), 2016, section 3.2; locks that others may have are ours.
//
// Invariants:
// 1. The server has one lock at a time, and none while it takes another: it waits for none.
// 2. What it saw without the lock is only why it takes it: then it looks again.
// 3. It keeps a lock only of which it has executed a request: who destroys a lock, whose requests
//    are executed, need only await that it gives the lock back.
#pragma once

#include <utility>

#include "lock/desk.hpp"

namespace muster::locks {

/// That a server has no lock.
inline constexpr Word no_lock = ~Word{0};

/// `clients`: more than the number of any that has posted. `has`: the lock that the server has,
/// from round to round. True if a request was executed. `Server` knows the locks, and how requests
/// are executed:
///   bool take(Word lock)                        true: it now has the lock
///   void execute(Word lock, Word client, Next)  that request, and the client's next ones for it
///   bool keeps(Word lock)                       after that: whether the lock stays with it
///   bool give(Word lock, Word client)           gives the lock back; false: ends the round
template <Machine M, class Server>
[[gnu::always_inline]] inline bool serve_round(M& m, const Rings<M>& rings,
                                               typename M::Cell& clients, Word& has,
                                               const Server& server) {
  bool found = false;
  const Word count = m.load(clients, relaxed);  // next() acquires
  for (Word client = next_client(m, 0, count); client < count;
       client = next_client(m, client + 1, count)) {
    auto wanted = rings.next(m, client);
    if (wanted.request == 0) continue;
    const Word lock = Rings<M>::lock_of(wanted.request);
    if (lock != has) {
      if (has != no_lock && !server.give(std::exchange(has, no_lock), client)) break;
      if (!server.take(lock)) continue;
      has = lock;
      wanted = rings.next(m, client);
    }
    const bool is_to_do = wanted.is_of(lock);
    if (is_to_do) {
      server.execute(lock, client, wanted);
      found = true;
    }
    if (is_to_do && server.keeps(lock)) continue;
    if (!server.give(std::exchange(has, no_lock), client)) break;
  }
  return found;
}

}  // namespace muster::locks
