// SPDX-License-Identifier: BSD-3-Clause
// What clients of an `auto` lock know besides its rings: each for itself what it has learnt about
// the lock, and all together whether somebody waits.
#pragma once

#include "lock/desk.hpp"
#include "lock/shape.hpp"

namespace muster::locks {

/// One client's.
struct Habit {
  Count inlined;  ///< executed by the client at once: the first, since also counted from outside
  bool delegates = false;
  unsigned until_trial = 0;  ///< requests, before it tries to take the lock again
  unsigned visits = 0;       ///< of others' requests since it last let another one have the lock,
                             ///< one of many requests being several
  Count delegated;           ///< executed by somebody else
  Count combined;            ///< of others, executed by this client
  Pace pace;                 ///< with which it executes these
  Count waited;              ///< executed by the client when it had waited, where others may not
  Count switches;            ///< from executing to delegating or back

  void set_delegates(bool now) {
    if (delegates == now) return;
    delegates = now;
    until_trial = trial;
    ++switches;
  }

  /// Whether it delegates, and somebody has executed its requests: who has the lock comes often.
  bool is_used_to() const { return delegates && until_trial != trial; }

  static constexpr unsigned trial = 1024;
};

/// That somebody has waited for some time. A hint: if it is lost, whoever waits repeats it, or
/// finds the lock free.
template <LockMachine M>
class Wanted {
 public:
  explicit Wanted(typename M::Cell& cell) : cell_(&cell) {}

  /// By whoever has the lock.
  bool is_set(M& m) const { return m.load(*cell_, relaxed) != 0; }
  /// Whether it is set, on hardware, for what its holder is to see to, as posts of a section are:
  /// nobody waits.
  bool is_unattended(M& m) const { return m.is_unattended(*cell_); }
  void clear(M& m) const { m.clear_wanted(*cell_); }
  /// As await_either(); gives the hint, on hardware when it has waited for a while.
  Either<M> wait_for_either(M& m, typename M::Cell& own, typename M::Cell& other,
                            Expectation expected) const {
    const int which = m.await_either(own, other, acquire, *cell_, expected);
    return {which == 0, which < 0};
  }

  /// Takes the lock without a request: for the middle of a section that has given it up, or for
  /// what no other thread may execute. False if it gave up.
  bool take_in_turn(M& m, const Desk<M>& desk) const {
    while (!desk.take(m)) {
      if (!wait_until_free(m, *desk.held)) return false;
    }
    return true;
  }
  bool wait_until_free(M& m, typename M::Cell& held) const { return m.wait_for_turn(held, *cell_); }

  /// Whether some wait for the lock itself, on hardware: they have no request that whoever has it
  /// could execute, or nobody may.
  bool is_slept_on(M& m) const { return m.is_slept_on(*cell_); }
  /// By who has just given the lock back: one of those that wait may take it first. `many` had
  /// requests at once: as it is where they yield in turn, and come back later.
  void let_one_in(M& m, typename M::Cell& held, bool many) const {
    m.let_one_in(held, *cell_, many);
  }

 private:
  typename M::Cell* cell_;
};

}  // namespace muster::locks
