// SPDX-License-Identifier: BSD-3-Clause
// How a client that waits for a lock sleeps, and how whoever gives the lock back finds out: the
// handshake of wait/sleep.hpp, with one word of a lock, `dozing`. A client sets it, passes the
// heavy fence and looks at the lock once more before it sleeps. Whoever gives the lock back stores
// to `held`, then looks at `dozing`: a plain load of a line that all caches have, since only
// sleepers and those who wake them write it. It is set while it is odd, and has a new value when it
// is cleared: so who is late to park sees that it was woken, though others have set it again.
//
// Source: ours.
//
// Invariants: while the lock is free no client sleeps whose request is not executed.
// 1. A client that sleeps has set `dozing`, and seen then that the lock is held. So its holder sees
//    `dozing` after giving it back. If another one has the lock by then, that one will see it.
// 2. `dozing` is made even by who has the lock, and then executes all that was posted before; or by
//    who has given it back, and then rouses all that wait for answers. Both wake one of those that
//    wait for the lock itself.
// 3. A client that was woken for the lock sets `dozing` again if others sleep. If it needs no lock
//    any more, it wakes the next one.
// 4. A client sleeps only if its request is the next one of its ring: a visit executes that.
#pragma once

#include <optional>

#include "wait/sleep.hpp"

namespace muster::locks {

/// What `wanted` says, unless it is 0: why whoever has the lock is to look when it gives it back. A
/// client waits; or, on hardware, a section has left something to see to, and nobody waits.
inline constexpr Word by_another = 1;
inline constexpr Word by_section = 2;

/// A word, and how many sleep on it.
template <class Atom>
struct Bed {
  Atom& word;
  Atom& sleepers;
};

/// In a request's entry: its client is to look again.
inline constexpr Word roused = Word{1} << 31;

template <LockParkingLot L>
struct Doze {
  using Atom = typename L::Atom;

  /// Until it is woken, or for a slice of the lot's; not at all if `is_over()`, which looks at the
  /// lock. A sleeper for its answer sleeps while its `request` is in its bed; for the lock, on
  /// `dozing`, without one.
  static void sleep(L& lot, Announcements<Atom>& all, Bed<Atom> bed, std::optional<Word> request,
                    Atom& dozing, auto is_over) {
    const Word before = announce(lot, all, bed.sleepers);
    // stronger: release would do; with acquire the checker finds a missing fence sooner
    const Word set = lot.make_odd(dozing, acq_rel);  // pairs with take_note()
    pass_fence(lot, all, before);
    if (!is_over()) lot.park(bed.word, request.value_or(set));
    take_back(lot, all, bed.sleepers);
  }
  /// Before that, by who waits for its answer: its request, 0 if it is executed.
  static Word unmark(L& lot, auto& own) {
    const Word request = lot.peek(own) & ~roused;
    lot.replace(own, request | roused, request);
    return request;
  }

  /// By who has the lock and goes on: nobody is woken before it is free. If several sleep it stays
  /// set, so that the one that is let in next lets in another.
  static void clear_wanted(L lot, auto& wanted, const auto& sleepers_on_dozing) {
    if (lot.peek(sleepers_on_dozing) < 2) lot.set(wanted, 0);
  }
  /// By who has given the lock back.
  static bool is_dozing(L lot, const auto& dozing) {
    lot.light_fence();  // pairs with heavy_fence in pass_fence()
    return lot.peek(dozing) % 2 != 0;
  }
  /// True: some may sleep, whom the caller sees to.
  static bool take_note(L lot, auto& dozing) {
    const Word seen = lot.peek(dozing);
    if (seen % 2 == 0) [[likely]]
      return false;
    // stronger: acquire would do, with twice as many executions to check
    lot.take(dozing, seen, seen + 1);  // pairs with a sleeper's; else another one has taken note
    return true;
  }
  /// By who has the lock, and knows of one that sleeps on.
  static void set_dozing(L lot, auto& dozing) {
    lot.make_odd(dozing, relaxed);  // no store: what sleepers have released is kept
  }
  /// By who has taken note. The mark keeps awake whom the wake-up comes too early for.
  static void rouse(L lot, auto& own, const auto& sleepers_here, Word request) {
    if (lot.peek(sleepers_here) == 0) return;
    lot.replace(own, request, request | roused);
    lot.unpark_all(own);
  }
  /// One of those that wait for the lock. False: none sleeps.
  static bool wake_one(L lot, const auto& dozing, const auto& sleepers_here) {
    const bool sleeps = lot.peek(sleepers_here) != 0;
    if (sleeps) [[unlikely]]
      lot.unpark_one(dozing);
    return sleeps;
  }
};

}  // namespace muster::locks
