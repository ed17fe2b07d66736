// SPDX-License-Identifier: BSD-3-Clause
// How a client waits for a lock that another one has: it says so in `wanted`, where whoever has the
// lock looks, and sleeps (doze.hpp) until its request is executed or the lock is free. And how it
// waits for a server, which comes without being told.
//
// ask() is a template over the client's pace: wait/asking.hpp's on hardware; the checker's asks and
// sleeps.
//   next(said)           Asking::Next; `said()`: somebody has said that it waits
//   pause(next, until)   polls or yields, as `next` says, until until(); false: it did nothing
//   is_next()            whether its request is the next one of its ring; may wait for that
// Source: ours.
#pragma once

#include <optional>

#include "lock/doze.hpp"
#include "wait/asking.hpp"

namespace muster::locks {

/// `own`: its request's entry, if it has one. `answer`: whoever has the lock executes that when
/// told; else the client is let in. 0: the request is executed; 1: it was not, and the lock was
/// free.
template <LockParkingLot L, class Atom, class Pace>
int ask(L& lot, Announcements<Atom>& all, const std::optional<Bed<Atom>>& own, bool answer,
        const Atom& held, Atom& wanted, Bed<Atom> dozing, Pace pace) {
  const auto is_free = [&](const Atom& word) { return lot.look(word) == 0; };
  const auto is_executed = [&] { return own && is_free(own->word); };
  const auto is_over = [&] { return is_executed() || lot.peek(held) == 0; };
  const auto sleep = [&] {
    if (!answer) return Doze<L>::sleep(lot, all, dozing, {}, dozing.word, is_over);
    if (!pace.is_next()) return;
    const Word request = Doze<L>::unmark(lot, own->word);
    Doze<L>::sleep(lot, all, *own, request, dozing.word,
                   [&] { return request == 0 || lot.peek(held) == 0; });
  };
  // Who is answered polls its own word alone: the other line is its holder's to write.
  const auto until = [&] { return answer ? is_executed() : is_over(); };
  for (;;) {
    const Asking::Next next = pace.next([&] { return lot.peek(wanted) == by_another; });
    if (next == Asking::Next::ask) lot.set(wanted, by_another);
    if (next == Asking::Next::sleep) {
      sleep();
    } else if (!pace.pause(next, until)) {
      continue;
    }
    if (is_executed()) return 0;
    if (is_free(held)) return is_executed() ? 0 : 1;  // both are 0: it is executed
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
