// SPDX-License-Identifier: BSD-3-Clause
// How storers and sleepers agree: a Dekker handshake. The sleeper announces itself, passes a fence
// and looks once more before it sleeps; the storer stores, passes a fence and looks for
// announcements. One of the two must see the other.
//
// Where sleeps are rare the fences are asymmetric: the sleeper issues the *heavy* one,
// membarrier(2) on hardware, which makes every running participant's *light* one, a mere compiler
// barrier, as good as a full one. So a storer pays one load of a line that stays in its cache. But
// a heavy fence costs more than the sleep itself (it interrupts other CPUs, one at a time in a
// process). So the first sleeper asks the storers to pass *full* fences instead, and the next
// sleepers do the same. A storer ends that after a thousand full fences that met nobody.
//
// Invariants:
// 1. A sleeper that parks on (atom, seen) has announced itself before it read `seen`.
// 2. A storer that changes the atom and then reads no announcement stored before that sleeper's
//    last look, which saw the store.
// 3. Announcements are taken back by whoever made them, and only by them: nobody wakes the dead.
//    One that died announced stays counted: full fences do not end.
// 4. Full fences are promised only after a heavy one that came after they were asked for, and are
//    given up only while nobody is announced.
#pragma once

#include "machine/machine.hpp"

namespace muster {

// clang-format off
/// Where participants park. All accesses are relaxed: the caller reads what was waited for again,
/// with acquire.
template <class L>
concept ParkingLot = requires(L& lot, typename L::Atom& atom, Word word) {
  { lot.add(atom, word) } -> std::same_as<Word>;  // what was there
  { lot.peek(atom) } -> std::same_as<Word>;
  lot.replace(atom, word, word);  // the first one by the second
  lot.park(atom, word);           // while it is that, until it is woken, or for a slice of time
  lot.unpark_all(atom);
  lot.light_fence();
  lot.heavy_fence();
  lot.full_fence();
  { lot.asks_for_fences() } -> std::same_as<bool>;  // its sleepers ask storers for full fences
  { lot.tired() } -> std::same_as<bool>;  // a storer met no sleeper: whether to end full fences
};

/// Of those who wait for a lock (lock/doze.hpp, lock/ask.hpp).
template <class L>
concept LockParkingLot = ParkingLot<L> && requires(L& lot, typename L::Atom& atom, Word word) {
  { lot.look(atom) } -> std::same_as<Word>;  // acquires
  lot.set(atom, word);                       // relaxed
  { lot.make_odd(atom, acq_rel) } -> std::same_as<Word>;  // what is there then
  lot.take(atom, word, word);                // as replace(); acquires and releases
  lot.unpark_one(atom);
};
// clang-format on

/// What a waiter does between two looks.
enum class WaitStep : std::uint8_t { look, sleep, give_up };

/// Announcements that all storers of one barrier or lock watch. One line, read by all and written
/// by sleepers; seldom by others, when full fences end.
template <class Atom>
struct Announcements {
  /// How many sleep, or are about to, on any cell or on the bell; and what fences storers pass.
  Atom sleepers;
  Atom any_sleepers;  ///< how many of them sleep on the bell
  Atom bell;          ///< rung by each storer while somebody waits for whichever of a set is ready
};

/// In Announcements::sleepers, above the count.
inline constexpr Word fences_asked = Word{1} << 30;
inline constexpr Word fences_promised = Word{1} << 31;
inline constexpr Word sleepers_counted = fences_asked - 1;

/// Storer's half, after its store: whether anybody sleeps on anything.
template <ParkingLot L, class Atom>
inline bool anybody_sleeps(L& lot, Announcements<Atom>& all) {
  lot.light_fence();  // pairs with heavy_fence in announce()
  Word seen = lot.peek(all.sleepers);
  if (seen == 0) [[likely]]
    return false;
  if (seen > sleepers_counted) {
    lot.full_fence();  // pairs with full_fence in announce()
    seen = lot.peek(all.sleepers);
    if (seen > sleepers_counted && (seen & sleepers_counted) == 0 && lot.tired()) {
      lot.replace(all.sleepers, seen, 0);
    }
  }
  return (seen & sleepers_counted) != 0;
}

/// Storer's half, after its store to `value`. `sleepers_here`: how many sleep on this very cell.
template <ParkingLot L, class Atom>
inline void wake_sleepers(L& lot, Announcements<Atom>& all, Atom& value, Atom& sleepers_here) {
  if (!anybody_sleeps(lot, all)) [[likely]]
    return;
  if (lot.peek(sleepers_here) != 0) lot.unpark_all(value);
  if (lot.peek(all.any_sleepers) != 0) {
    lot.add(all.bell, 1);
    lot.unpark_all(all.bell);
  }
}

/// Sleeper's half: `here` is what else it announces itself in. What pass_fence() takes.
template <ParkingLot L, class Atom>
inline Word announce(L& lot, Announcements<Atom>& all, Atom& here) {
  const Word before = lot.add(all.sleepers, 1);
  lot.add(here, 1);
  return before;
}

/// Sleeper's half, before its last look.
template <ParkingLot L, class Atom>
inline void pass_fence(L& lot, Announcements<Atom>& all, Word before) {
  if ((before & fences_promised) != 0) {
    lot.full_fence();  // pairs with full_fence in anybody_sleeps()
    return;
  }
  const bool asks = before == 0 && lot.asks_for_fences();
  if (asks) lot.add(all.sleepers, fences_asked);
  lot.heavy_fence();  // pairs with light_fence in anybody_sleeps()
  if (asks) lot.add(all.sleepers, fences_promised);
}

template <ParkingLot L, class Atom>
inline void take_back(L& lot, Announcements<Atom>& all, Atom& here) {
  lot.add(here, Word(-1));
  lot.add(all.sleepers, Word(-1));
}

/// Sleeper's half for one cell: returns when woken, when `ready(value)` already holds, or when the
/// lot's time slice is over. The caller looks again.
template <ParkingLot L, class Atom, class Pred>
inline void sleep_on(L& lot, Announcements<Atom>& all, Atom& value, Atom& sleepers_here,
                     Pred ready) {
  pass_fence(lot, all, announce(lot, all, sleepers_here));
  const Word seen = lot.peek(value);
  if (!ready(seen)) lot.park(value, seen);
  take_back(lot, all, sleepers_here);
}

/// Sleeper's half for whichever of a set: `any_ready()` looks at all of them. The bell is read
/// before the fence, so a ring in between keeps it from parking.
template <ParkingLot L, class Atom, class AnyReady>
inline void sleep_on_bell(L& lot, Announcements<Atom>& all, AnyReady any_ready) {
  const Word before = announce(lot, all, all.any_sleepers);
  const Word rung = lot.peek(all.bell);
  pass_fence(lot, all, before);
  if (!any_ready()) lot.park(all.bell, rung);
  take_back(lot, all, all.any_sleepers);
}

}  // namespace muster
