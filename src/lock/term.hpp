// SPDX-License-Identifier: BSD-3-Clause
// A server starts, leaves and has ended, and then another one may start. Several may want to stop
// it at once, its own watchdog, too, and start the next.
//
// A template over a CrewMachine.
// Source: ours.
//
// Invariants:
// 1. One at most ends a server.
// 2. A server has ended, and another one may begin, when its last thread has.
#pragma once

#include "lock/crew.hpp"

namespace muster::locks {

template <class M>
struct Term {
  enum Phase : Word { stopped, serving, leaving };

  Crew<M> crew;
  typename M::Atom phase;
  typename M::Signal ended;

  // With the crew's mutex.

  bool is(M& m, Phase of) const { return m.load(phase, relaxed) == of; }
  /// Until nobody is ending the server.
  void await_end(M& m) {
    while (is(m, leaving)) m.wait(ended, crew.roles);
  }
  void begin(M& m) {
    m.store(crew.stopping, 0, relaxed);
    m.store(crew.at_work, 1, relaxed);
    m.store(phase, serving, relaxed);
  }
  /// True: the caller is to end it.
  bool leave(M& m) {
    if (!is(m, serving)) return false;
    m.store(phase, leaving, relaxed);
    return true;
  }

  /// Without it, when nobody needs the server any more. `join()` returns when its threads are gone.
  void end(M& m, auto join) {
    crew.stop(m);
    join();
    m.within(crew.roles, [&] {
      m.store(phase, stopped, relaxed);
      m.call_all(ended);
    });
  }
};

}  // namespace muster::locks
