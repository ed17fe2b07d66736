// SPDX-License-Identifier: BSD-3-Clause
// A server's life: round after round through the rings of many locks. It looks at each client's
// next request, and executes what it finds with the lock that the request names, if nobody else has
// that. It keeps the lock while the next request names the same one: a core that executes no atomic
// operation between two clients can wait for the lines of both at once. A station's servers
// (delegation/station.cpp), the model's (attended.hpp) and the checker's are this, with what each
// knows of its locks and of waiting.
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
#include "wait/asking.hpp"

namespace muster::locks {

constexpr Word no_client = ~Word{0};

/// One client after another, of those that had come when the round began.
template <LockMachine M>
class Walk {
 public:
  /// `clients`: more than the number of any that has posted.
  Walk(M& m, typename M::Cell& clients) : port_(m), clients_(clients) {}

  Word next(Word from) {
    if (from == 0) count_ = port_.load(clients_, relaxed);  // rings.next() acquires
    const Word client = port_.next_client(from, count_);
    return client < count_ ? client : no_client;
  }
  Word count() const { return count_; }

 protected:
  M& port_;

 private:
  typename M::Cell& clients_;
  Word count_ = 0;
};

/// What `Server::execute()` below may do: executes the request, and the client's next ones for that
/// lock, a ring full at most, while `goes_on()`, which is asked before each of these.
template <Machine M, class Work, class GoesOn>
[[gnu::always_inline]] inline void execute_row(M& m, const Rings<M>& rings, Word client,
                                               typename Rings<M>::Next next, Work& work,
                                               GoesOn goes_on) {
  const Word lock = Rings<M>::lock_of(next.request);
  for (unsigned left = rings.depth();;) {
    rings.execute(m, client, next, work);
    if (--left == 0) return;
    next = rings.next(m, client);
    if (!next.is_of(lock) || !goes_on()) return;
  }
}

/// True if a request was executed. A lock is kept until another one's request comes, or somebody
/// waits for it. `Server` knows the clients, the locks, and how requests are executed:
///   Word next(Word from)                        the first client from there on that may have a
///                                               request; else no_client
///   Word count()                                more than any of theirs
///   bool take(Word lock)                        true: it now has the lock
///   auto lock(Word number)                      an Auto (auto.hpp), or what has its ask(m),
///                                               is_wanted(m) and give_and_let_in(m)
///   bool execute(Word lock, Word client, Next)  that request, and the client's next ones for it;
///                                               false: the lock is to be given back at once
///   bool has_given()                            has given a lock back; false: ends the round
/// `asks`: it says so of each lock that it finds taken.
template <Machine M, class Server>
[[gnu::always_inline]] inline bool serve_round(M& m, const Rings<M>& rings, Server& server,
                                               bool asks) {
  constexpr Word none = Rings<M>::locks_max;
  Word has = none;
  bool found = false;
  const auto give = [&] {
    server.lock(std::exchange(has, none)).give_and_let_in(m);
    return server.has_given();
  };
  for (Word client = server.next(0); client != no_client; client = server.next(client + 1)) {
    auto pending = rings.next(m, client);
    if (pending.request == 0) continue;
    fetch_ahead(m, rings, client, server.count());
    if (!pending.is_of(has)) {
      if (has != none && !give()) return found;
      const Word lock = Rings<M>::lock_of(pending.request);
      if (!server.take(lock)) {
        if (asks) server.lock(lock).ask(m);
        continue;
      }
      has = lock;
      pending = rings.next(m, client);
      if (!pending.is_of(has)) continue;
    }
    found = true;
    if (server.execute(has, client, pending) && !server.lock(has).is_wanted(m)) continue;
    if (!give()) return found;
  }
  if (has != none) give();
  return found;
}

/// Until `server` ends:
///   bool goes_on(bool found)   before each round; `found` something in the last one, else it may
///                              wait; false: it ends
/// It waits for no lock, and asks now and then for those that it finds taken. In the model, with
/// LL/SC, a client that goes on has the lock's line each time, so the server never finds it free.
template <Machine M, class Server>
[[gnu::always_inline]] inline void serve(M& m, const Rings<M>& rings, Server&& server) {
  bool found = true;
  for (unsigned round = 0; server.goes_on(found); ++round) {
    found = serve_round(m, rings, server, round % Asking::races == 0);
  }
}

}  // namespace muster::locks
