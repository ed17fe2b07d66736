// SPDX-License-Identifier: BSD-3-Clause
// Mutexes with a queue: whoever finds the word taken joins an MCS list, in which each waits on a
// word of its own; only the first looks at the mutex. It calls the next one as soon as it has taken
// the word, so nobody needs its place in the list while it is inside; a sleeper it wakes when it
// has given the word. Whom it calls: InLine, below, and lock/parking_cna.hpp. Waiting with a
// deadline is not done in the queue but beside it, at the front.
//
// Cost: that of lock/parking.hpp, and two line transfers for each who waits.
// Source: Mellor-Crummey and Scott, ACM TOCS 9(1), 1991, algorithm 5; the word beside the list is
// Linux's qspinlock (kernel/locking/qspinlock.c, Long and Zijlstra).
//
// Invariants:
// 1. Who finds the tail 0, or is called, is first until it calls another or empties the list.
// 2. First come, first served, among those in the list. The word is anybody's until the first one
//    claims it: so nobody waits for longer than that for each before it.
// 3. Whoever calls has the word, and who is called takes it before it touches anything but its own
//    words: what the first one leaves to the next is ordered by the word.
// 4. A client's three words are written by the one before it, by the first, and by the one after it
//    (its link); by itself only while it is in no list.
// 5. A tail with another mark than ours was left by threads of the process that we were forked
//    from: nobody will call.
#pragma once

#include "lock/parking.hpp"

namespace muster::locks {

/// `Order` says whom the first one, who has the word, calls: choose(m, queue, ticket, next) where
/// there is a next in line, else rest(m, queue, ticket): the first of those set aside, or 0.
template <class M, template <class> class Order>
class ParkingQueue {
 public:
  static constexpr Traits traits = Order<M>::traits;

  struct Ticket {
    Word client;    ///< from 1 to 65535
    Word numa = 0;  ///< where it is now; a hint
    Word mark = 0;  ///< of this process, in the upper half; 0 outside of forked processes
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 7, .slots = shape.clients + 1, .cells_per_slot = 3};
  }
  ParkingQueue(const Shape& shape, typename M::Cells cells) : cells_(cells), limit_(shape.limit) {}
  Ticket ticket(unsigned client) const { return {.client = client + 1, .numa = client % 2}; }

  bool acquire(M& m, const Ticket& t) const {
    return word(t).try_acquire(m) || word(t).acquire_soon(m) || acquire_in_line(m, t);
  }
  bool acquire_in_line(M& m, const Ticket& t) const {
    if (!join(m, t)) await_call(m, t);
    return acquire_called(m, t);
  }

  // The steps of acquire_in_line(). True: it is the first.
  bool join(M& m, const Ticket& t) const {
    m.store(link(t.client), 0, relaxed);  // all three before the exchange releases them
    m.store(numa(t.client), t.numa, relaxed);
    m.store(turn(t.client), waiting, relaxed);
    const Word mine = t.mark | t.client;
    const Word before = client_of(m.exchange(tail(), mine, acq_rel), t);  // pairs with itself, and
    if (before == 0) return true;                                         // with call_next's
    m.store(link(before), t.client, muster::release);  // pairs with the loads of it
    return false;
  }
  void await_call(M& m, const Ticket& t) const {
    if (!m.poll(turn(t.client), equals(called))) fall_asleep(m, t.client);
    // stronger: so that who is called looks at nothing older than its caller did
    m.await(turn(t.client), equals(called), muster::acquire);  // pairs with call
  }
  bool acquire_called(M& m, const Ticket& t) const {
    if (!word(t).acquire_in_turn(m)) return false;
    call_next(m, t);
    return true;
  }

  // For Order.
  auto& link(Word client) const { return cells_.of(client, 0); }
  auto& numa(Word client) const { return cells_.of(client, 1); }
  auto& aside_first() const { return cells_.global(3); }  ///< with a mark; the first one owns these
  auto& aside_last() const { return cells_.global(4); }
  auto& streak() const { return cells_.global(5); }
  Word limit() const { return limit_; }
  /// The client in a word with our mark; 0 where it is nobody, or a mark of others.
  static Word client_of(Word word, const Ticket& t) {
    return (word & ~client_mask) == t.mark ? word & client_mask : 0;
  }

 private:
  enum Turn : Word { called, waiting, asleep };

  ParkingWord<M> word(const Ticket& t) const { return {{}, cells_, t.mark}; }
  auto& tail() const { return cells_.global(2); }
  auto& turn(Word client) const { return cells_.of(client, 2); }

  void fall_asleep(M& m, Word client) const {
    Word seen = waiting;
    if (!m.compare_exchange(turn(client), seen, asleep, relaxed)) return;
    while (m.load(turn(client), relaxed) == asleep) m.park(turn(client), asleep);
  }

  void call_next(M& m, const Ticket& t) const {
    Word next = m.load(link(t.client), muster::acquire);  // pairs with join's store
    if (next == 0) {
      next = Order<M>::rest(m, *this, t);
      const Word left = next == 0 ? 0 : t.mark | m.load(aside_last(), relaxed);
      Word mine = t.mark | t.client;
      if (m.compare_exchange(tail(), mine, left, muster::release)) {  // pairs with join's
        if (next == 0) return;
        m.store(aside_first(), 0, relaxed);
        return call(m, t, next);
      }
      m.await(link(t.client), Differs{0}, muster::acquire);  // as the load above
      next = m.load(link(t.client), relaxed);
    }
    call(m, t, Order<M>::choose(m, *this, t, next));
  }

  void call(M& m, const Ticket& t, Word client) const {
    // stronger: as the await in await_call
    const Word was = m.exchange(turn(client), called, muster::release);  // pairs with await_call
    if (was == asleep) word(t).owe_wake_up(m, client);
  }

  static constexpr Word client_mask = 0xffff;

  typename M::Cells cells_;
  Word limit_;
};

/// The mutex `mcs`: its first one calls the next in line.
template <class M>
struct InLine {
  static constexpr Traits traits{"mcs", Style::direct, false, "two",
                                 "Mellor-Crummey and Scott 1991, beside a word as in qspinlock"};
  static Word choose(M&, const auto&, const auto&, Word next) { return next; }
  static Word rest(M&, const auto&, const auto&) { return 0; }
};
template <class M>
using ParkingMcs = ParkingQueue<M, InLine>;

}  // namespace muster::locks
