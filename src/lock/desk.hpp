// SPDX-License-Identifier: BSD-3-Clause
// What rcl and auto share: a lock, and the rings that its requests are in.
#pragma once

#include <algorithm>

#include "lock/hints.hpp"
#include "lock/rings.hpp"

namespace muster::locks {

/// By who executes this client's request: others may have one, too. Looks that find nothing are to
/// be quick. `count`: more than the number of any client that has posted.
template <LockMachine M>
void fetch_ahead(M& m, const Rings<M>& rings, Word client, Word count) {
  const Word next = fetched_ahead(m, client, count);
  if (next >= count) return;
  // What next() will look at.
  for (unsigned at = 0; at < std::min(rings.depth(), 2U); ++at) {
    m.expect_load(rings.at_last(m, next, at));
  }
}

template <LockMachine M>
struct Desk {
  typename M::Cell* held;     ///< 1 while somebody has the lock: executes its requests
  typename M::Cell* clients;  ///< more than the number of any that has posted
  Rings<M> rings;
  Word lock;
  std::int64_t visit_ns = Visit::usual_ns;

  void enter(M& m, typename Rings<M>::Ticket& t) const {
    if (t.entered) return;
    raise_clients(m, *clients, t.client);
    t.entered = true;
  }

  /// True if the caller now has the lock.
  bool take(M& m) const { return m.take_held(*held); }
  bool is_free(M& m) const { return m.load(*held, relaxed) == 0; }
  void give(M& m) const { m.give_held(*held); }

  /// Calls fn(client, next, count) for each client whose next request is one for this lock.
  void for_each_request(M& m, auto fn) const {
    const Word count = m.load(*clients, relaxed);
    for (Word client = m.next_client(0, count); client < count;
         client = m.next_client(client + 1, count)) {
      const auto next = rings.next(m, client);
      if (next.is_of(lock)) fn(client, next, count);
    }
  }
  /// Executes what is pending, one request of each client; how many. The caller has the lock.
  unsigned pass(M& m, auto& work) const {
    unsigned executed = 0;
    for_each_request(m, [&](Word client, const auto& next, Word count) {
      fetch_ahead(m, rings, client, count);
      rings.execute(m, client, next, work);
      ++executed;
    });
    return executed;
  }
  /// Tells all that sleep until their requests are executed to look again.
  void rouse(M& m) const {
    for_each_request(m, [&](Word client, const auto& next, Word) {
      m.rouse(rings.entry(client, next), next.request);
    });
  }
  /// Pass after pass while there are requests, as long as a visit may take; one if there is a
  /// server, which goes on; how many.
  unsigned combine(M& m, auto& work, auto combines, auto is_served, Pace& pace) const {
    unsigned executed = 0;
    for (Visit visit(visit_ns, pace); !visit.is_over(m, executed) && combines();) {
      const unsigned more = pass(m, work);
      executed += more;
      if (more == 0 || is_served()) break;
    }
    return executed;
  }
};

}  // namespace muster::locks
