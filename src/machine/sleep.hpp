// SPDX-License-Identifier: BSD-3-Clause
// How storers and sleepers agree: an asymmetric Dekker handshake. The sleeper announces itself,
// issues the *heavy* fence and looks once more before it sleeps; the storer stores, passes the
// *light* fence and looks for announcements. One of the two must see the other. On hardware the
// heavy fence is membarrier(2), which makes every running participant's light fence, a mere
// compiler barrier, as good as a full one: a storer pays one load of a line that stays in its
// cache. The checker runs the same text with two seq_cst fences.
//
// Each function is a template over a parking lot `L` with the primitives
//   add(Atom&, delta)  peek(Atom&)  light_fence()  heavy_fence()  park(Atom&, seen)
//   unpark_all(Atom&)
// all relaxed: what was waited for is read again, with acquire, by the caller.
//
// Invariants:
// 1. A sleeper that parks on (atom, seen) has announced itself before it read `seen`.
// 2. A storer that changes the atom and then reads no announcement stored before that sleeper's
//    last look, which saw the store.
// 3. Announcements are taken back by whoever made them, and only by them: nobody wakes the dead.
#pragma once

#include "machine/machine.hpp"

namespace muster {

/// Announcements that all storers of one barrier or lock watch. One line, read by all and written
/// only by sleepers.
template <class Atom>
struct Announcements {
  Atom sleepers;      ///< how many sleep, or are about to, on any cell or on the bell
  Atom any_sleepers;  ///< how many of them sleep on the bell
  Atom bell;          ///< rung by each storer while somebody waits for whichever of a set is ready
};

/// Storer's half, after its store to `value`. `sleepers_here`: how many sleep on this very cell.
template <class L, class Atom>
inline void wake_sleepers(L& lot, Announcements<Atom>& all, Atom& value, Atom& sleepers_here) {
  lot.light_fence();  // pairs with heavy_fence below
  if (lot.peek(all.sleepers) == 0) [[likely]]
    return;
  if (lot.peek(sleepers_here) != 0) lot.unpark_all(value);
  if (lot.peek(all.any_sleepers) != 0) {
    lot.add(all.bell, 1);
    lot.unpark_all(all.bell);
  }
}

/// Sleeper's half for one cell: returns when woken, when `ready(value)` already holds, or when the
/// lot's time slice is over. The caller looks again.
template <class L, class Atom, class Pred>
inline void sleep_on(L& lot, Announcements<Atom>& all, Atom& value, Atom& sleepers_here,
                     Pred ready) {
  lot.add(all.sleepers, 1);
  lot.add(sleepers_here, 1);
  lot.heavy_fence();  // pairs with light_fence above
  const Word seen = lot.peek(value);
  if (!ready(seen)) lot.park(value, seen);
  lot.add(sleepers_here, Word(-1));
  lot.add(all.sleepers, Word(-1));
}

/// Sleeper's half for whichever of a set: `any_ready()` looks at all of them. The bell is read
/// before it looks, so a ring in between keeps it from parking.
template <class L, class Atom, class AnyReady>
inline void sleep_on_bell(L& lot, Announcements<Atom>& all, AnyReady any_ready) {
  lot.add(all.sleepers, 1);
  lot.add(all.any_sleepers, 1);
  const Word rung = lot.peek(all.bell);
  lot.heavy_fence();  // pairs with light_fence above
  if (!any_ready()) lot.park(all.bell, rung);
  lot.add(all.any_sleepers, Word(-1));
  lot.add(all.sleepers, Word(-1));
}

}  // namespace muster
