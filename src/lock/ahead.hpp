// SPDX-License-Identifier: BSD-3-Clause
// A section that blocks keeps back those of other locks until a watchdog has found it. So a lock of
// which one has blocked has its next ones executed with a spare at work ahead of them, until enough
// have not blocked.
//
// A template over a CrewMachine.
// Source: ours.
#pragma once

#include "lock/crew.hpp"

namespace muster::locks {

template <class M>
struct Ahead {
  /// Once a section has blocked with a spare at work; one that the watchdog has found has the next
  /// one so, and then it is known whether that was the section's doing. Where each second section
  /// of 48 locks sleeps, the watchdog has to find 20 a second, with 4 it is 80, with 1 360, with 64
  /// 20.
  static constexpr Word after_block = 16;

  /// By who has the lock and is at work, or was: `sections()` executes some of the lock's. `left`
  /// is the lock's: so many of the next ones have a spare.
  [[gnu::always_inline]] static void execute(M& m, Crew<M>& crew, typename Crew<M>::Member& self,
                                             typename Crew<M>::Atom& left, auto sections) {
    crew.attend(m);
    const Word with_spare = m.load(left, relaxed);
    const long waits = with_spare == 0 ? 0 : step_ahead(m, crew, self);
    sections();
    if (with_spare != 0) [[unlikely]] {
      m.store(left, m.waits() != waits ? after_block : with_spare - 1, relaxed);
    } else if (m.load(self.counted, relaxed) == 0) [[unlikely]] {
      m.store(left, 1, relaxed);
    }
  }

 private:
  [[gnu::cold, gnu::noinline]] static long step_ahead(M& m, Crew<M>& crew,
                                                      typename Crew<M>::Member& self) {
    if (crew.step_aside(m, self)) m.has_stepped_ahead();
    return m.waits();
  }
};

}  // namespace muster::locks
