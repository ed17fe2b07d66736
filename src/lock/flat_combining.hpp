// SPDX-License-Identifier: BSD-3-Clause
// Flat combining. A client publishes its request in its own slot and tries the lock: who gets it
// executes what everybody has published, pass after pass while there is something, up to a limit,
// and frees it; the others wait for their slot to be cleared, or for the lock. A client that found
// nobody's request but its own when it last had the lock tries it first, and publishes only if it
// is taken. It looks for others' requests after each fourth of such sections: that takes longer
// than a short section. Who waits meanwhile may find the lock free.
//
// Cost: two line transfers a section executed by another; none while one client is alone.
// Source: Hendler, Incze, Shavit and Tzafrir, SPAA 2010. Publication records are slots here, and
// stay; those whose thread has ended are not looked at. That who is alone publishes nothing, and
// looks seldom, is ours.
//
// Invariants:
// 1. A slot is nonzero while its request is not executed. Only its client makes it nonzero, only
//    whoever has the lock makes it 0, and looks at it with the lock taken: nothing runs twice.
// 2. Who has had the lock has had its own request executed.
#pragma once

#include "lock/hints.hpp"

namespace muster::locks {

template <LockMachine M>
class FlatCombining : public Combining<FlatCombining<M>> {
 public:
  static constexpr Traits traits{"flat-combining", Style::combining, false, "two",
                                 "Hendler, Incze, Shavit and Tzafrir 2010"};

  struct Ticket {
    unsigned client;
    bool entered = false;  ///< others know of it
    unsigned given = 0;    ///< sections of its own, with nothing published
    bool alone = false;    ///< when it last had the lock, or tried to
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 2, .slots = shape.clients, .cells_per_slot = 1};
  }
  FlatCombining(const Shape& shape, typename M::Cells cells) : limit_(shape.limit), cells_(cells) {}
  Ticket ticket(unsigned client) const { return {client}; }

  bool take(M& m, Ticket& t) const { return t.alone && m.take_held(held()); }
  bool delegate(M& m, Ticket& t, auto& work) const {
    publish(m, t, work);
    while (m.load(held(), relaxed) != 0 || !m.take_held(held())) {
      const int first = m.await_either(pending(t.client), held(), acquire, Awaited::combiner);
      if (first < 0) return false;
      if (first == 0) return true;
    }
    if (m.load(pending(t.client), relaxed) != 0) {  // nobody just has
      m.store_unawaited(pending(t.client), 0);
      work.run_own(m);
    }
    return serve(m, t, work);
  }
  bool give(M& m, Ticket& t) const {
    const Word count = m.load(clients(), relaxed);
    if (count > 1 && t.given++ % sections_per_look == 0 && has_pending(m, t.client, count)) {
      return false;
    }
    m.give_held(held());
    return true;
  }
  bool serve(M& m, Ticket& t, auto& work) const {
    t.alone = true;
    for (unsigned executed = 0, passes = 0; executed < limit_ && passes < passes_max; ++passes) {
      const unsigned more = pass(m, t.client, work);
      if (more == 0) break;
      executed += more;
      t.alone = false;
    }
    m.give_held(held());
    return true;
  }

 private:
  static constexpr unsigned sections_per_look = 4;
  static constexpr unsigned passes_max = 8;  // others have as many sections to its one

  void publish(M& m, Ticket& t, auto& work) const {
    t.alone = false;
    if (!t.entered) raise_clients(m, clients(), t.client);
    t.entered = true;
    work.put(m, t.client);
    m.store(pending(t.client), 1, release);  // pairs with pass's load
  }
  /// Whether a client but this one has a request. Apart: the registers that it takes would have to
  /// be saved by every section of a client that is alone.
  [[gnu::noinline]] bool has_pending(M& m, Word but, Word count) const {
    for (Word client = m.next_client(0, count); client < count;
         client = m.next_client(client + 1, count)) {
      if (client != but && m.load(pending(client), relaxed) != 0) return true;
    }
    return false;
  }
  /// Executes what is pending of clients but this one, one request of each; how many.
  unsigned pass(M& m, Word but, auto& work) const {
    unsigned executed = 0;
    const Word count = m.load(clients(), relaxed);
    for (Word client = m.next_client(0, count); client < count;
         client = m.next_client(client + 1, count)) {
      if (client == but || m.load(pending(client), acquire) == 0)
        continue;  // pairs with delegate's
      const Word ahead = fetched_ahead(m, client, count);
      if (ahead < count) m.expect_load(pending(ahead));
      work.run(m, client);
      m.store(pending(client), 0, release);  // pairs with its client's await
      ++executed;
    }
    return executed;
  }

  auto& held() const { return cells_.global(0); }
  /// More than the number of any client that has posted.
  auto& clients() const { return cells_.global(1); }
  auto& pending(Word client) const { return cells_.of(client, 0); }

  unsigned limit_;
  typename M::Cells cells_;
};

}  // namespace muster::locks
