// SPDX-License-Identifier: BSD-3-Clause
// CC-Synch: a queue of requests whose head combines. Who comes exchanges its spare slot for the
// tail's, leaves its request there and links the spare behind it. The head executes the requests
// that follow, up to a limit, and makes the next one head. The tail's slot is always empty.
//
// Cost: an exchange and two line transfers a section; the holder's cache keeps the data.
// Source: Fatourou and Kallimanis, PPoPP 2012, algorithm 1 (CC-Synch).
//
// Invariants:
// 1. There is one slot more than there are clients, per queue; each is a client's spare, in the
//    queue, or the tail's.
// 2. One slot of a queue is marked `head`, or its owner is combining.
// 3. Once a slot is marked `done` its owner may reuse it: its link is read before.
#pragma once

#include "lock/shape.hpp"

namespace muster::locks {

template <Machine M>
class CcSynch {
 public:
  static constexpr Traits traits{"cc-synch", Style::combining, true, "three",
                                 "Fatourou and Kallimanis 2012, algorithm 1"};

  struct Ticket {
    Word spare;
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 1, .slots = shape.clients + 1, .cells_per_slot = 2};
  }
  CcSynch(const Shape& shape, typename M::Cells cells) : limit_(shape.limit), cells_(cells) {}
  /// Slot 0 is the tail's at first, and its state `head`.
  Ticket ticket(unsigned client) const { return {client + 1}; }

  template <class Work>
  bool execute(M& m, Ticket& t, Work& work) const {
    return enqueue(
        m, t, 0, work, [] { return true; }, [] {});
  }

  /// One of several queues: `tail` is the number of its tail's cell. `enter` before combining
  /// (false: gave up) and `leave` after it are h-synch's.
  template <class Work, class Enter, class Leave>
  bool enqueue(M& m, Ticket& t, unsigned tail, Work& work, Enter enter, Leave leave) const {
    m.store(state(t.spare), waiting, relaxed);  // both before the exchange releases them
    m.store(link(t.spare), 0, relaxed);
    const Word slot = m.exchange(cells_.global(tail), t.spare, acq_rel);  // pairs with itself
    work.put(m, slot);
    m.store(link(slot), t.spare + 1, release);  // pairs with the combiner's load
    t.spare = slot;
    if (!m.await(state(slot), at_least(head), acquire))
      return false;  // pairs with combine's stores
    if (m.load(state(slot), relaxed) == done) return true;
    if (!enter()) return false;
    const Word next = combine(m, slot, work);
    leave();
    m.store(state(next), head, release);  // pairs with the next head's await
    return true;
  }

 private:
  // at_least(head) holds for the two that end a wait.
  static constexpr Word waiting = ~Word{0};
  static constexpr Word head = 0;
  static constexpr Word done = 1;

  /// Executes what is queued from `slot` on; returns who is head next.
  template <class Work>
  Word combine(M& m, Word slot, Work& work) const {
    for (unsigned executed = 0; executed < limit_; ++executed) {
      const Word next = m.load(link(slot), acquire);  // pairs with the client's store
      if (next == 0) break;
      work.run(m, slot);
      m.store(state(slot), done, release);  // pairs with its client's await
      slot = next - 1;
    }
    return slot;
  }

  auto& state(Word slot) const { return cells_.of(slot, 0); }
  auto& link(Word slot) const { return cells_.of(slot, 1); }

  unsigned limit_;
  typename M::Cells cells_;
};

}  // namespace muster::locks
