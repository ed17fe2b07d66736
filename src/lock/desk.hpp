// SPDX-License-Identifier: BSD-3-Clause
// What rcl and auto share: a lock, and the rings that its requests are in.
#pragma once

#include "lock/hints.hpp"
#include "lock/rings.hpp"

namespace muster::locks {

template <Machine M>
struct Desk {
  typename M::Cell* held;     ///< 1 while somebody has the lock: executes its requests
  typename M::Cell* clients;  ///< more than the number of any that has posted
  Rings<M> rings;
  Word lock;

  void enter(M& m, typename Rings<M>::Ticket& t) const {
    if (t.entered) return;
    raise_clients(m, *clients, t.client);
    t.entered = true;
  }

  /// True if the caller now has the lock.
  bool take(M& m) const { return take_held(m, *held); }
  void give(M& m) const { give_held(m, *held); }

  /// Executes what is pending, one request of each client, first that of `from` and those after it;
  /// how many. The caller has the lock.
  template <class Work>
  unsigned pass(M& m, Work& work, Word from = 0) const {
    const Word count = m.load(*clients, relaxed);
    from = count == 0 ? 0 : from % count;
    return pass_among(m, work, from, count) + pass_among(m, work, 0, from);
  }

 private:
  template <class Work>
  unsigned pass_among(M& m, Work& work, Word begin, Word end) const {
    unsigned executed = 0;
    for (Word client = next_client(m, begin, end); client < end;
         client = next_client(m, client + 1, end)) {
      if (rings.serve(m, client, lock, work)) ++executed;
    }
    return executed;
  }
};

}  // namespace muster::locks
