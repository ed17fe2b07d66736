// SPDX-License-Identifier: BSD-3-Clause
// CC-Synch: a queue of requests whose head combines. Who comes exchanges its spare slot for the
// tail's, leaves its request there and links the spare behind it. The head executes its own and the
// requests that follow, up to a limit, and makes the next one head. The tail's slot is always
// empty.
//
// Cost: an exchange and two line transfers a section; the holder's cache keeps the data. While one
// client is alone: the exchange.
// Source: Fatourou and Kallimanis, PPoPP 2012, algorithm 1 (CC-Synch). That a head leaves no
// request is ours: nobody else would look for it.
//
// Invariants:
// 1. There is one slot more than there are clients, per queue; each is a client's spare, in the
//    queue, or the tail's.
// 2. One slot of a queue is marked `head`, or its owner is combining.
// 3. Once a slot is marked `done` its owner may reuse it: its link is read before.
// 4. A spare's link is 0: whoever has left a request takes its link back.
#pragma once

#include "lock/hints.hpp"
#include "lock/shape.hpp"

namespace muster::locks {

template <LockMachine M>
class CcSynch : public Combining<CcSynch<M>> {
 public:
  static constexpr Traits traits{"cc-synch", Style::combining, true, "three",
                                 "Fatourou and Kallimanis 2012, algorithm 1"};

  struct Ticket {
    Word spare;     ///< while it is in the queue: the slot that it is in
    Word next = 0;  ///< the slot behind that
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 1, .slots = shape.clients + 1, .cells_per_slot = 2};
  }
  CcSynch(const Shape& shape, typename M::Cells cells) : limit_(shape.limit), cells_(cells) {}
  /// Slot 0 is the tail's at first, and its state `head`.
  Ticket ticket(unsigned client) const { return {client + 1}; }

  bool take(M& m, Ticket& t) const { return join(m, t, 0); }
  bool delegate(M& m, Ticket& t, auto& work) const {
    const Turn turn = leave_request(m, t, work);
    if (turn != Turn::head) return turn == Turn::done;
    work.run_own(m);
    return serve(m, t, work);
  }
  bool give(M& m, Ticket& t) const {
    if (m.load(link(t.next), relaxed) != 0) return false;
    make_head(m, t.next);
    return true;
  }
  bool serve(M& m, Ticket& t, auto& work) const {
    make_head(m, combine(m, t, work));
    return true;
  }

  // The same for one of several queues, for h-synch.

  enum class Turn : std::uint8_t { head, done, gave_up };

  /// `tail`: the number of the cell of the queue's tail. True if the client is head.
  bool join(M& m, Ticket& t, unsigned tail) const {
    const Word next = t.spare;
    t.next = next;
    m.store_unawaited(state(next), waiting);  // before the exchange releases it
    const Word slot =
        m.exchange_unawaited(cells_.global(tail), next, acq_rel);  // pairs with itself
    t.spare = slot;
    return m.load(state(slot), acquire) == head;  // pairs with make_head's store
  }
  /// If it is not: until it is, or its request is executed.
  Turn leave_request(M& m, Ticket& t, auto& work) const {
    work.put(m, t.spare);
    m.store(link(t.spare), t.next + 1, release);  // pairs with the combiner's load
    if (!m.await(state(t.spare), at_least(head), acquire, Awaited::combiner))
      return Turn::gave_up;               // pairs with its stores
    m.store_unawaited(link(t.spare), 0);  // before the exchange that makes it the tail's
    return m.load(state(t.spare), relaxed) == done ? Turn::done : Turn::head;
  }
  /// Executes what is queued behind the head's own; returns who is head next.
  Word combine(M& m, Ticket& t, auto& work) const {
    Word slot = t.next;
    for (unsigned executed = 1; executed < limit_; ++executed) {
      const Word next = m.load(link(slot), acquire);  // pairs with the client's store
      if (next == 0) break;
      work.run(m, slot);
      m.store(state(slot), done, release);  // pairs with its client's await
      slot = next - 1;
    }
    return slot;
  }
  void make_head(M& m, Word slot) const {
    m.store(state(slot), head, release);  // pairs with the next head's loads
  }

 private:
  // at_least(head) holds for the two that end a wait.
  static constexpr Word waiting = ~Word{0};
  static constexpr Word head = 0;
  static constexpr Word done = 1;

  auto& state(Word slot) const { return cells_.of(slot, 0); }
  auto& link(Word slot) const { return cells_.of(slot, 1); }

  unsigned limit_;
  typename M::Cells cells_;
};

}  // namespace muster::locks
