// SPDX-License-Identifier: BSD-3-Clause
// What clients of an `auto` lock know besides its rings: each for itself what it has learnt about
// the lock, and all together whether somebody waits.
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

/// That somebody has waited for some time. A hint, which may get lost: who sleeps says so in
/// `dozing`, too, where whoever gives the lock back looks afterwards (doze.hpp).
template <LockMachine M>
class Wanted {
 public:
  /// `back`: StandBack's.
  Wanted(typename M::Cell& cell, typename M::Cell& dozing, typename M::Cell* back = nullptr)
      : cell_(&cell), dozing_(&dozing), back_(back) {}

  /// By whoever has the lock.
  bool is_set(M& m) const { return m.load(*cell_, relaxed) != 0; }
  /// Whether it is set, on hardware, for what its holder is to see to, as posts of a section are:
  /// nobody waits.
  bool is_by_section(M& m) const { return m.is_by_section(*cell_); }
  /// By who waits for the lock, and looks again by itself.
  void ask(M& m) const { m.store_unawaited(*cell_, by_another); }
  void clear(M& m) const { m.clear_wanted(*cell_, *dozing_); }
  /// True: some may sleep, whose requests are posted; the caller sees to them.
  bool take_note(M& m) const { return m.take_note(*dozing_); }
  void set_dozing(M& m) const { m.set_dozing(*dozing_); }
  /// By who has given the lock back.
  bool is_dozing(M& m) const { return m.is_dozing(*dozing_); }
  /// Gives the lock back where what others have posted is not executed.
  void give(M& m, const Desk<M>& desk) const {
    desk.give(m);
    look_back(m, desk);
  }
  /// Likewise by a server, which comes again: whoever waits for the lock itself may have it first.
  void give_and_let_in(M& m, const Desk<M>& desk) const {
    const bool was_wanted = is_set(m);
    const bool nobody_waits = is_by_section(m);
    if (was_wanted) [[unlikely]]
      clear(m);
    give(m, desk);
    if (was_wanted && (!nobody_waits || is_slept_on(m))) [[unlikely]]
      let_one_in(m, *desk.held);
  }
  /// After that: sleepers are to look again. If another one has the lock by now, it sees to that.
  void look_back(M& m, const Desk<M>& desk) const {
    while (is_dozing(m) && desk.is_free(m)) {
      take_note(m);
      desk.rouse(m);
      m.wake_one(*dozing_);
    }
  }
  /// As M's await_either(); gives the hint, on hardware when it has waited for a while.
  int wait_for_either(M& m, typename M::Cell& own, const Desk<M>& desk,
                      const typename Rings<M>::Ticket& ring,
                      Expectation<typename M::Cell> expected) const {
    expected.served = &desk.rings.served(ring.client);
    expected.counted = Served::least_after(ring.posted - 1);
    return m.await_either(own, *desk.held, acquire, *cell_, *dozing_, expected);
  }

  /// Takes the lock without a request: for the middle of a section that has given it up, or for
  /// what no other thread may execute. False if it gave up.
  bool take_in_turn(M& m, const Desk<M>& desk) const {
    for (unsigned lost = 0; !desk.take(m); ++lost) {
      if (!m.wait_for_turn(*desk.held, *cell_, *dozing_, lost)) return false;
    }
    pass_on(m);
    return true;
  }
  /// By who has the lock and may have been woken for it: others sleep on.
  void pass_on(M& m) const {
    if (is_slept_on(m)) set_dozing(m);
  }
  /// By who may have been woken for the lock, and does not need it.
  void wake_next(M& m) const { m.wake_one(*dozing_); }

  /// Whether some wait for the lock itself, on hardware: they have no request that whoever has it
  /// could execute, or nobody may.
  bool is_slept_on(M& m) const { return m.is_slept_on(*dozing_); }
  /// By who has just given the lock back: one of those that wait may take it first.
  void let_one_in(M& m, typename M::Cell& held) const {
    m.let_one_in(held, *dozing_);
    static_cast<void>(StandingBack<M>(back_).did(m));
  }
  StandingBack<M> standing_back(const Habit& h) const { return StandingBack<M>(back_, h.had_ns); }

 private:
  typename M::Cell* cell_;
  typename M::Cell* dozing_;
  typename M::Cell* back_;
};

}  // namespace muster::locks
