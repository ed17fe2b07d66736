// SPDX-License-Identifier: BSD-3-Clause
// Which of a server's threads is at work: goes rounds (round.hpp). One that may block steps aside;
// one that blocks all the same is found by the watchdog. Then a spare takes over, or a new thread.
// Who comes back while another one is at work becomes a spare.
//
// A template over a CrewMachine, which need not be known yet where a crew is.
// Source: ours. Lozi et al., ACM TOCS 33(4), 2016, section 3.2, need SCHED_FIFO for it.
//
// Invariants, with the mutex:
// 1. `at_work` counts the members that are counted and the vacant places. It is 0 only while no
//    thread can be made, and at the end.
// 2. Who leaves its work to others rings: one that sleeps has not seen the requests that this one
//    kept from its sight. And it rouses the watchdog: one that does not sleep may be stuck.
// 3. The watchdog naps for long only while somebody has slept and executed nothing since.
#pragma once

#include "machine/crew_machine.hpp"

namespace muster::locks {

template <class M>
struct Crew {
  using Atom = typename M::Atom;

  /// A thread of the server.
  struct Member {
    Atom counted;  ///< in `at_work`: neither blocked nor a spare, as far as is known
  };

  Atom at_work;
  Atom stopping;
  Atom asleep;  ///< who is at work; since it last executed something
  Atom vacant;  ///< places at work that spares are to take
  Atom spare;   ///< members that wait for that
  typename M::Mutex roles;
  typename M::Signal spares;
  typename M::Signal watchdog;

  /// Before each round. False: it asks whether it remains().
  bool is_alone(M& m, const Member& self) const {
    if (m.load(at_work, relaxed) != 1) return false;
    return is_set(m, self.counted) && !is_set(m, stopping);
  }
  /// False if the thread is to end. Who is one too many waits here until it is wanted.
  bool remains(M& m, Member& self) {
    return m.within(roles, [&] {
      if (!is_set(m, self.counted)) count(m, self);
      if (is_alone(m, self)) return true;
      discount(m, self);
      m.ring();
      if (is_set(m, asleep)) rouse(m);
      change(m, spare, 1);
      while (!is_set(m, vacant) && !is_set(m, stopping)) m.wait(spares, roles);
      change(m, spare, Word(-1));
      if (!is_set(m, vacant)) return false;
      change(m, vacant, Word(-1));
      m.store(self.counted, 1, relaxed);  // in at_work since replace()
      return true;
    });
  }

  /// Before what may block. False: it is not counted anyway. Else it comes back after that.
  bool step_aside(M& m, Member& self) {
    return m.within(roles, [&] {
      if (!is_set(m, self.counted)) return false;
      discount(m, self);
      replace(m);
      return true;
    });
  }
  void come_back(M& m, Member& self) {
    m.within(roles, [&] {
      count(m, self);
      if (is_set(m, asleep)) rouse(m);
    });
  }

  /// By who is at work: when it finds nothing, `sleep(is_over)`; and before it executes something.
  void sleep(M& m, auto is_any_pending, auto sleep) {
    m.store(asleep, 1, relaxed);
    sleep([&] { return is_set(m, stopping) || is_any_pending(); });
  }
  void attend(M& m) {
    if (is_set(m, asleep)) [[unlikely]]
      m.within(roles, [&] { rouse(m); });
  }

  /// By the watchdog, again and again. False: the server ends.
  bool watch(M& m) {
    static_assert(CrewMachine<M>);
    return m.within(roles, [&] {
      if (is_set(m, stopping)) return false;
      m.nap(watchdog, roles, is_set(m, asleep));
      for (const auto& member : m.members()) {
        if (is_set(m, member->counted) && m.is_stuck(*member)) discount(m, *member);
      }
      replace(m);
      return !is_set(m, stopping);
    });
  }

  /// Ends all: each remains no longer, nor does the watchdog.
  void stop(M& m) {
    m.within(roles, [&] {
      m.store(stopping, 1, relaxed);
      m.call_all(spares);
      m.call_all(watchdog);
    });
    m.ring();
  }

 private:
  static bool is_set(M& m, const Atom& atom) { return m.load(atom, relaxed) != 0; }
  static void change(M& m, Atom& number, Word by) {
    const Word changed = m.load(number, relaxed) + by;
    m.store(number, changed, relaxed);
  }
  void count(M& m, Member& member) {
    m.store(member.counted, 1, relaxed);
    change(m, at_work, 1);
  }
  void discount(M& m, Member& member) {
    m.store(member.counted, 0, relaxed);
    change(m, at_work, Word(-1));
  }
  void rouse(M& m) {
    m.store(asleep, 0, relaxed);
    m.call_one(watchdog);
  }
  /// If nobody is at work.
  void replace(M& m) {
    if (is_set(m, at_work) || is_set(m, stopping)) return;
    const Word called = m.load(vacant, relaxed);
    const bool has_spare = m.load(spare, relaxed) != called;
    if (!has_spare && !m.hire()) return;  // the watchdog tries again, or somebody comes back
    change(m, at_work, 1);
    m.has_handed_over();
    if (!has_spare) return;
    change(m, vacant, 1);
    m.call_one(spares);
  }
};

}  // namespace muster::locks
