// SPDX-License-Identifier: BSD-3-Clause
// What clients of an `auto` lock have besides its rings: each for itself what it has learnt about
// the lock, and all together the lock itself, and whether somebody waits for it.
#pragma once

#include "lock/desk.hpp"
#include "lock/doze.hpp"
#include "lock/shape.hpp"

namespace muster::locks {

/// One client's.
struct Habit {
  Count inlined;  ///< executed by the client at once: the first, since also counted from outside
  bool delegates = false;
  unsigned until_trial = 0;  ///< requests, before it tries to take the lock again
  unsigned visits = 0;       ///< of others' requests
  std::int64_t had_ns = 0;   ///< StandingBack's
  Count delegated;           ///< executed by somebody else
  Count combined;            ///< of others, executed by this client
  Pace pace;                 ///< with which it executes these
  Count waited;              ///< executed by the client when it had waited, where others may not
  Count switches;            ///< from executing to delegating or back

  /// A client delegates once it failed to take the lock, met others as a server ran, or visited 32
  /// times; until its request waits at a free lock, or `trial` times.
  void set_delegates(bool now) {
    if (delegates == now) return;
    delegates = now;
    until_trial = trial;
    ++switches;
  }

  /// Whether it delegates, and somebody has executed its requests: who has the lock comes often.
  bool is_used_to() const { return delegates && until_trial != trial; }

  /// After a visit of others' requests: whether it goes on before another one has the lock. Else it
  /// delegates: others have many sections in each visit, it has one.
  bool goes_on_after_visit(auto& m) {
    if (++visits % visits_max != 0) return true;
    set_delegates(true);
    had_ns = m.time_ns();
    return false;
  }

  /// In the model 16 clients beside a server of an EPYC do 0.95 with 256, the same with up to
  /// 65,536.
  static constexpr unsigned trial = 1024;
  /// In the model two clients of a Kunpeng do 0.85 with 4, 31 of POWER9 0.69 with 64, randomly.
  /// With 16 one of four on an EPYC has 7.9 times as many sections as another, not 4.8. On
  /// hardware 8 and 64 threads do as many with 16 as with 64.
  static constexpr unsigned visits_max = 32;
};

/// How those that wait for a lock say so.
template <LockMachine M>
struct Wanted {
  typename M::Cell& wanted;          ///< some have waited for a while: a hint, which may get lost
  typename M::Cell& dozing;          ///< some are about to sleep (doze.hpp)
  typename M::Cell* back = nullptr;  ///< StandBack's
};

/// The lock itself, whatever requests there are: for who executes none, and for a server.
template <LockMachine M>
class WantedLock {
 public:
  WantedLock(const Desk<M>& desk, const Wanted<M>& wanted) : desk_(desk), wanted_(wanted) {}
  const Desk<M>& desk() const { return desk_; }
  const Wanted<M>& wanted() const { return wanted_; }

  bool take(M& m) const { return desk_.take(m); }
  /// Without a request: for the middle of a section that has given it up, or for what no other
  /// thread may execute. False if it gave up.
  bool take_in_turn(M& m) const {
    for (unsigned lost = 0; !take(m); ++lost) {
      if (!m.wait_for_turn(*desk_.held, wanted_.wanted, wanted_.dozing, lost)) return false;
    }
    pass_on(m);
    return true;
  }
  /// By who waits for the lock, and looks again by itself.
  void ask(M& m) const { m.store_unawaited(wanted_.wanted, by_another); }
  /// By whoever has the lock.
  bool is_wanted(M& m) const { return m.load(wanted_.wanted, relaxed) != 0; }
  /// Where what others have posted is not executed.
  void give(M& m) const {
    desk_.give(m);
    look_back(m);
  }
  /// Likewise by a server, which comes again: whoever waits for the lock itself may have it first.
  void give_and_let_in(M& m) const {
    const bool was_wanted = is_wanted(m);
    const bool nobody_waits = m.is_by_section(wanted_.wanted);
    if (was_wanted) [[unlikely]]
      m.clear_wanted(wanted_.wanted, wanted_.dozing);
    give(m);
    if (was_wanted && (!nobody_waits || m.is_slept_on(wanted_.dozing))) [[unlikely]]
      let_one_in(m);
  }

 protected:
  /// By who has given the lock back: sleepers are to look again. If another one has the lock by
  /// now, it sees to that.
  void look_back(M& m) const {
    while (m.is_dozing(wanted_.dozing) && desk_.is_free(m)) {
      m.take_note(wanted_.dozing);
      desk_.rouse(m);
      m.wake_one(wanted_.dozing);
    }
  }
  /// Likewise: one of those that wait may take it first.
  void let_one_in(M& m) const {
    m.let_one_in(*desk_.held, wanted_.dozing);
    static_cast<void>(StandingBack<M>(wanted_.back).did(m));
  }
  /// By who has the lock and may have been woken for it: others sleep on. They wait for the lock
  /// itself: they have no request that whoever has it could execute, or nobody may.
  void pass_on(M& m) const {
    if (m.is_slept_on(wanted_.dozing)) m.set_dozing(wanted_.dozing);
  }

  Desk<M> desk_;
  Wanted<M> wanted_;
};

}  // namespace muster::locks
