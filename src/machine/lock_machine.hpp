// SPDX-License-Identifier: BSD-3-Clause
// What a lock may do to the world besides what a barrier may. Every machine has all of this, so no
// lock asks what its machine can do. On hardware it is delegation/port.hpp; the modelled and the
// checked machine take NobodySleeps, below, but for the checker's programs whose clients sleep, and
// have their own clock and pause. What a server's threads need is in machine/crew_machine.hpp, what
// sleepers need in wait/sleep.hpp.
//
// Three words of a lock have operations of their own. `held` is 1 while somebody has the lock;
// `wanted` is set when somebody has waited for that to end for some time, `dozing` when it is about
// to sleep (lock/doze.hpp). Nobody sleeps on `held`, so whoever gives a lock back need not look
// there.
#pragma once

#include "machine/machine.hpp"

namespace muster {

/// A turn of linger(), by the clock: a core's pause takes 5 to 50 ns. In the model the busiest of a
/// Xeon's four clients has 1.2 times the sections of another; where a turn took 30 ns, 6.6 times.
inline constexpr std::int64_t linger_turn_ns = 10;

/// What a client that waits may expect of whoever has the lock.
template <class Cell>
struct Expectation {
  bool soon;          ///< its requests have been executed soon: the lock is seldom free for long
  bool answer;        ///< they are executed when it says that it waits
  unsigned lost = 0;  ///< so often the lock was free, and it has not got it
  Cell* served = nullptr;  ///< at least `counted` when all its earlier requests are executed; null:
  Word counted = 0;        ///< there are none
};

// clang-format off
template <class M>
concept LockMachine = Machine<M> && requires(M& m, typename M::Cell& cell, typename M::Cell& other,
                                             typename M::Cell& wanted, typename M::Cell& dozing,
                                             Word word, unsigned turns,
                                             Expectation<typename M::Cell> expected) {
  // Time. The checked machine has none: it pauses where a program says so, and each look at its
  // clock is a second after the last one.
  m.linger(turns);  // pauses between two looks, for so many turns
  { m.time_ns() } -> std::same_as<std::int64_t>;
  // Whether threads have to share CPUs, which only hardware's do. Two loads.
  { m.is_crowded() } -> std::same_as<bool>;
  // Whether the caller shares memory with that place, a steward's (lock/steward.hpp): a CPU. To the
  // checker all are near.
  { m.is_near(word) } -> std::same_as<bool>;
  // The first client from `word` on that may have a request, of those below the second; else the
  // second. Hardware looks who has a seat, 64 clients a load; elsewhere each may have one.
  { m.next_client(word, word) } -> std::same_as<Word>;
  // Loads there soon, and not now: many misses may be outstanding. A hint.
  m.expect_load(cell);
  // To what nobody awaits: hardware need not look whether to wake somebody, which is a load.
  m.store_unawaited(cell, word);  // relaxed
  { m.exchange_unawaited(cell, word, acq_rel) } -> std::same_as<Word>;
  // Acquires; true if the caller has the lock now. No exchange: with LL/SC the load finds the lock
  // taken, where an exchange waits for its turn and finds it free.
  { m.take_held(cell) } -> std::same_as<bool>;
  m.give_held(cell);                            // releases
  // Waits until `cell` is 0 (returns 0) or `other` is (returns 1); -1: it gave up. Without a
  // combiner `other` is a server's: 1 + the PU where it is, as pu(). The second one, by who waits
  // for its answer or for the lock, sets `wanted` when that takes long.
  { m.await_either(cell, other, acquire, Awaited::combiner) } -> std::same_as<int>;
  { m.await_either(cell, other, acquire, wanted, dozing, expected) } -> std::same_as<int>;
  // Waits without a request until `cell` is 0, and says so in `wanted`; false: it gave up. The
  // number is Expectation's `lost`.
  { m.wait_for_turn(cell, wanted, dozing, turns) } -> std::same_as<bool>;
  // By who has the lock. Whether some sleep in wait_for_turn(); whether `wanted` is set by a
  // section of its own, which left something to see to, and nobody waits: on hardware only.
  { m.is_slept_on(dozing) } -> std::same_as<bool>;
  { m.is_by_section(wanted) } -> std::same_as<bool>;
  m.clear_wanted(wanted, dozing);
  // By who has just given the lock back: whether `dozing` is set, by all that sleep by then.
  { m.is_dozing(dozing) } -> std::same_as<bool>;
  { m.take_note(dozing) } -> std::same_as<bool>;  // of that; false: it is not
  m.set_dozing(dozing);                           // again, by who has the lock
  m.rouse(cell, word);  // wakes who sleeps until this request there is executed
  { m.wake_one(dozing) } -> std::same_as<bool>;  // of those in wait_for_turn(); false: none
  // Lets one that waits be first, for some microseconds.
  m.let_one_in(cell, dozing);
};
// clang-format on

/// What a lock asks for that its holder's death leaves usable (lock/robust.hpp). On hardware it is
/// delegation/robust_lock.hpp.
template <class M>
concept MortalMachine = requires(M& m, typename M::Cell& cell, Word word, Equals pred) {
  // Who the caller is: not 0, and without the bit above number_bits (machine/identity.hpp).
  { m.identity() } -> std::same_as<Word>;
  // Whether whoever a word names has ended, or is nobody. After each sleep: hardware looks when
  // one was long. Elsewhere nobody dies, but where the checker says so.
  { m.is_gone(word) } -> std::same_as<bool>;
  // Looks for a while; whether it has come to hold.
  { m.poll(cell, pred) } -> std::same_as<bool>;
  // Sleeps, but not for long, unless the cell holds something else. False: it gave up.
  { m.park(cell, word) } -> std::same_as<bool>;
  m.unpark(cell);  // wakes one that sleeps there; only the cell's address is used
};

/// Most of `M`, a LockMachine on which each participant has a PU of its own and nobody sleeps: so
/// nobody is woken, and nobody dies. M adds linger() and time_ns().
template <class M>
class NobodySleeps {
 public:
  static bool is_crowded() { return false; }
  static bool is_near(Word) { return true; }
  static Word next_client(Word from, Word) { return from; }
  static void expect_load(const auto&) {}

  void store_unawaited(auto& cell, Word word, Site site = Site::here()) {
    port().store(cell, word, relaxed, site);
  }
  Word exchange_unawaited(auto& cell, Word word, auto order, Site site = Site::here()) {
    return port().exchange(cell, word, order, site);
  }
  bool take_held(auto& held, Site site = Site::here()) {
    Word free = 0;
    return port().compare_exchange(held, free, 1, acquire, site);  // pairs with give_held's store
  }
  void give_held(auto& held, Site site = Site::here()) {
    port().store(held, 0, release, site);  // pairs with take_held
  }

  int await_either(auto& own, auto& other, OrderTag<Order::acquire>, Awaited,
                   Site site = Site::here()) {
    typename M::Cell* const both[] = {&own, &other};
    const std::size_t which = port().await_any(CellSet<M>(both), equals(0), acquire, 0, site);
    return which == no_cell ? -1 : static_cast<int>(which);
  }
  /// Says at once that it waits: no time passes that would make a difference.
  template <class Cell>
  int await_either(Cell& own, Cell& other, OrderTag<Order::acquire>, Cell& wanted, const Cell&,
                   const Expectation<Cell>&, Site site = Site::here()) {
    say_that_it_waits(wanted);
    return await_either(own, other, acquire, Awaited::anyone, site);
  }
  bool wait_for_turn(auto& held, auto& wanted, const auto&, unsigned, Site site = Site::here()) {
    say_that_it_waits(wanted);
    return port().await(held, equals(0), relaxed, Awaited::anyone, site);  // whoever takes acquires
  }
  static bool is_slept_on(const auto&) { return false; }
  static bool is_by_section(const auto&) { return false; }
  void clear_wanted(auto& wanted, const auto&, Site site = Site::here()) {
    port().store(wanted, 0, relaxed, site);
  }
  static bool is_dozing(const auto&) { return false; }
  static bool take_note(const auto&) { return false; }
  static void set_dozing(const auto&) {}
  static void rouse(const auto&, Word) {}
  static bool wake_one(const auto&) { return false; }
  void let_one_in(const auto&, const auto&) { port().linger(64); }

  Word identity() { return port().pu(); }
  static bool is_gone(Word) { return false; }
  bool poll(auto& cell, auto pred, Site site = Site::here()) {
    return pred(port().load(cell, relaxed, site));
  }
  bool park(auto& cell, Word seen, Site site = Site::here()) {
    return port().await(cell, Differs{seen}, relaxed, Awaited::anyone, site);
  }
  static void unpark(const auto&) {}

 private:
  void say_that_it_waits(auto& wanted) {
    port().store(wanted, 1, relaxed);  // locks::by_another
  }
  M& port() { return static_cast<M&>(*this); }
};

}  // namespace muster
