// SPDX-License-Identifier: BSD-3-Clause
// Send and receive over queues in shared memory, the way an MPI does it between two ranks: each
// pair has a queue of its own, in the receiver's memory, that only the sender fills and only the
// receiver empties. Messages are empty, so how many were sent is all that a queue has to hold: one
// counter, which is never full. The base-* barriers run on it, to be compared with those that share
// flags directly.
//
// A synchronous send returns when its message has been taken. The receiver says so in a second cell
// of the pair, in the sender's memory; it knows which messages are to be confirmed.
//
// Cost: 2P cells a rank, one a sender and one a receiver: 2P^2 in all.
//
// Invariants:
// 1. Message cell (to, from) is stored to by `from` alone and counts its messages to `to`, modulo
//    2^32. Receipt cell (from, to) is stored to by `to` alone: the last of them that it confirmed.
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
    std::vector<typename M::Cell*> open;  ///< who has not been heard yet
  };

  static constexpr unsigned cells_per_rank(unsigned ranks) { return 2 * ranks; }

  /// `first`: where the counters start; not 0 only in tests that want to see them wrap.
  Mailboxes(unsigned ranks, Word first, typename M::Cells cells)
      : ranks_(ranks), first_(first), cells_(cells) {}

  /// Once, before any message, if `first` is not 0.
  void prepare(M& m) const {
    for (unsigned rank = 0; rank < ranks_; ++rank) {
      for (unsigned cell = 0; cell < 2 * ranks_; ++cell) {
        m.store(cells_.of(rank, cell), first_, relaxed);
      }
    }
  }

  Traffic traffic(unsigned rank) const {
    return {rank, std::vector<Word>(ranks_, first_), std::vector<Word>(ranks_, first_), {}};
  }

  /// Never waits.
  void send(M& m, Traffic& t, unsigned to) const {
    m.store(cells_.of(to, t.rank), ++t.sent[to], release);  // pairs with receive's await
  }

  /// Returns when it has been taken, by receive_and_confirm; false if it gave up.
  bool send_synchronously(M& m, Traffic& t, unsigned to) const {
    send(m, t, to);
    const AtLeast taken = at_least(t.sent[to]);
    return m.await(receipt(t.rank, to), taken, relaxed);  // it tells nothing else
  }

  /// Returns when the next message of this sender has come; false if it gave up.
  bool receive(M& m, Traffic& t, unsigned from) const {
    const Word next = ++t.received[from];
    return m.await(cells_.of(t.rank, from), at_least(next), acquire);  // pairs with send
  }

  /// The receiver's side of send_synchronously.
  bool receive_and_confirm(M& m, Traffic& t, unsigned from) const {
    if (!receive(m, t, from)) return false;
    m.store(receipt(from, t.rank), t.received[from], relaxed);
    return true;
  }

  /// One message of every other rank, whoever comes first. Of each it has received as many before.
  bool receive_from_others(M& m, Traffic& t) const {
    Word next = first_;
    t.open.clear();
    for (unsigned from = 0; from < ranks_; ++from) {
      if (from == t.rank) continue;
      t.open.push_back(&cells_.of(t.rank, from));
      next = ++t.received[from];
    }
    for (std::size_t at = 0; !t.open.empty();) {  // goes on behind the last one, as a poll does
      at = m.await_any(t.open, at_least(next), acquire, at);  // pairs with send
      if (at == no_cell) return false;
      t.open.erase(t.open.begin() + static_cast<std::ptrdiff_t>(at));
      if (at == t.open.size()) at = 0;
    }
    return true;
  }

 private:
  typename M::Cell& receipt(unsigned sender, unsigned receiver) const {
    return cells_.of(sender, ranks_ + receiver);
  }

  unsigned ranks_;
  Word first_;
  typename M::Cells cells_;
};

}  // namespace muster
