// SPDX-License-Identifier: BSD-3-Clause
// Send and receive over queues in shared memory, the way an MPI does it between two ranks: each
// pair has a queue of its own, in the receiver's memory, that only the sender fills and only the
// receiver empties. Messages are empty, so how many were sent is all that a queue has to hold: one
// counter, which is never full. The base-* barriers run on it, to be compared with those that share
// flags directly.
//
// Cost: P cells a rank, one a sender: P^2 in all.
//
// Invariants:
// 1. Cell (to, from) is stored to by `from` alone and counts its messages to `to`, modulo 2^32.
// 2. A receiver is never 2^31 messages behind: comparisons are modular.
#pragma once

#include <vector>

#include "machine/machine.hpp"

namespace muster {

template <Machine M>
class Mailboxes {
 public:
  /// A rank's private half: its messages so far, by the other rank.
  struct Traffic {
    unsigned rank;
    std::vector<Word> sent;
    std::vector<Word> received;
  };

  static constexpr unsigned cells_per_rank(unsigned ranks) { return ranks; }

  /// `first`: where the counters start; not 0 only in tests that want to see them wrap.
  Mailboxes(unsigned ranks, Word first, typename M::Cells cells)
      : ranks_(ranks), first_(first), cells_(cells) {}

  /// Once, before any message, if `first` is not 0.
  void prepare(M& m) const {
    for (unsigned to = 0; to < ranks_; ++to) {
      for (unsigned from = 0; from < ranks_; ++from) m.store(cells_.of(to, from), first_, relaxed);
    }
  }

  Traffic traffic(unsigned rank) const {
    return {rank, std::vector<Word>(ranks_, first_), std::vector<Word>(ranks_, first_)};
  }

  /// Never waits.
  void send(M& m, Traffic& t, unsigned to) const {
    charge(m);
    m.store(cells_.of(to, t.rank), ++t.sent[to], release);  // pairs with receive's await
  }

  /// Returns when the next message of this sender has come; false if it gave up.
  bool receive(M& m, Traffic& t, unsigned from) const {
    const Word next = ++t.received[from];
    if (!m.await(cells_.of(t.rank, from), at_least(next), acquire))
      return false;  // pairs with send
    charge(m);
    return true;
  }

 private:
  /// The modelled machine adds what an MPI's layers cost for each message; hardware pays by
  /// running.
  static void charge(M& m) {
    if constexpr (requires { m.message(); }) m.message();
  }

  unsigned ranks_;
  Word first_;
  typename M::Cells cells_;
};

}  // namespace muster
