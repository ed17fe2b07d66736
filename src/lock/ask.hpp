// SPDX-License-Identifier: BSD-3-Clause
// How a client waits for a lock that another one has: it says so in `wanted`, where whoever has the
// lock looks, and sleeps (doze.hpp) until its request is executed or the lock is free. And how it
// waits for a server, which comes without being told.
//
// ask() is a template over how the client sleeps, and over its pace: wait/asking.hpp's on hardware
// and in the model; the checker's asks and sleeps at once.
//   next(said)           Asking::Next; `said()`: somebody has said that it waits
//   pause(next, until)   polls or yields, as `next` says, until until(); false: it did nothing
// Source: ours.
#pragma once

#include <optional>

#include "lock/doze.hpp"
#include "machine/lock_machine.hpp"
#include "wait/asking.hpp"

namespace muster::locks {

/// `own`: its request's entry, if it has one. `answer`: whoever has the lock executes that when
/// told; else the client is let in. `sleep()`: sleep_in_turn(), below; in the model, where nobody
/// sleeps, it awaits one of the two. 0: the request is executed; 1: it was not, and the lock was
/// free; -1: sleep() returned false.
template <LockMachine M, class Pace, class Sleep>
int ask(M& m, const typename M::Cell* own, bool answer, const typename M::Cell& held,
        typename M::Cell& wanted, Pace& pace, Sleep sleep) {
  const auto is_free = [&](const typename M::Cell& cell) { return m.load(cell, acquire) == 0; };
  const auto is_executed = [&] { return own != nullptr && is_free(*own); };
  // Its holder writes to `held`: only who has asked to be let in polls that, too.
  bool asks = false;
  const auto until = [&] { return is_executed() || (asks && m.load(held, relaxed) == 0); };
  for (;;) {
    const Asking::Next next = pace.next([&] { return m.load(wanted, relaxed) == by_another; });
    if (next == Asking::Next::ask) {
      m.store_unawaited(wanted, by_another);
      asks = !answer;
    }
    if (next == Asking::Next::sleep) {
      if (!sleep()) return -1;
    } else if (!pace.pause(next, until)) {
      continue;
    }
    if (is_executed()) return 0;
    if (is_free(held)) return is_executed() ? 0 : 1;  // both are 0: it is executed
  }
}

/// How a client that has asked sleeps. `is_next()`: its request is the next one of its ring; may
/// wait for that.
template <LockParkingLot L, class Atom, class IsNext>
void sleep_in_turn(L& lot, Announcements<Atom>& all, const std::optional<Bed<Atom>>& own,
                   bool answer, const Atom& held, Bed<Atom> dozing, IsNext is_next) {
  const auto is_free = [&] { return lot.peek(held) == 0; };
  if (!answer) {
    Doze<L>::sleep(lot, all, dozing, {}, dozing.word,
                   [&] { return (own && lot.peek(own->word) == 0) || is_free(); });
  } else if (is_next()) {
    const Word request = Doze<L>::unmark(lot, own->word);
    Doze<L>::sleep(lot, all, *own, request, dozing.word, [&] { return request == 0 || is_free(); });
  }
}

/// Until its request is executed (returns 0), or `server` is 0 and it is not (returns 1); -1: it
/// gave up. `next(server)` says what it does between two looks. A server that leaves wakes nobody,
/// and need not: it executes what was posted before. Who posts later has seen that it has left, by
/// the light fence behind each store (pairs with the heavy one in depart()).
template <ParkingLot L, class Atom, class Next>
int await_answer(L& lot, Announcements<Atom>& all, Bed<Atom> own, const Atom& server, Next next) {
  for (;;) {
    if (lot.look(own.word) == 0) return 0;
    const Word there = lot.peek(server);
    if (there == 0) return lot.look(own.word) == 0 ? 0 : 1;
    const WaitStep now = next(there);
    if (now == WaitStep::give_up) return -1;
    if (now == WaitStep::sleep) sleep_on(lot, all, own.word, own.sleepers, equals(0));
  }
}

}  // namespace muster::locks
