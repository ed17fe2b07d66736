// SPDX-License-Identifier: BSD-3-Clause
// Tournament. In round k the rank whose bit k is the lowest one set loses to the rank without that
// bit: it tells the winner and waits; a winner whose opponent does not exist has a bye. The
// champion, rank 0, wakes its losers from the last round to the first, and every woken rank wakes
// those it had beaten. All parts are fixed beforehand, so there are no atomic read-modify-writes.
//
// Cost: P - 1 stores up, P - 1 down, a chain of 2 log2 P: O(log P).
// Source: Hensgen, Finkel and Manber, IJPP 17(1), 1988; Mellor-Crummey and Scott, ACM TOCS 9(1),
// 1991, algorithm 10; `shm-tournament` of [K22].
//
// Invariants:
// 1. A rank loses exactly once an episode (rank 0 never), so one wake-up flag a rank is enough.
// 2. A loser writes its winner's flag of round k only after it was woken from the episode before:
//    no flag skips a sense.
#pragma once

#include "barrier/shape.hpp"

namespace muster {

template <Machine M>
class Tournament {
 public:
  static constexpr Traits traits{
      "tournament", Champion::rank0, false, "P - 1 stores up, P - 1 down, a chain of 2 log P",
      "Hensgen, Finkel and Manber 1988; Mellor-Crummey and Scott 1991, algorithm 10"};

  struct Ticket {
    unsigned rank;
    Word sense = 0;
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 0, .cells_per_rank = rounds_of(shape.participants) + 1};
  }

  Tournament(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants), rounds_(rounds_of(shape.participants)), cells_(cells) {}

  void prepare(M&) const {}
  Ticket ticket(unsigned rank) const { return {rank}; }

  bool wait(M& m, Ticket& t) const {
    t.sense ^= 1;
    unsigned round = 0;
    for (; round < rounds_; ++round) {
      const unsigned bit = 1U << round;
      if ((t.rank & bit) != 0) {
        // Pairs with the winner's await below; the await, with its store at the end.
        m.store(defeat(t.rank - bit, round), t.sense, release);
        if (!m.await(wakeup(t.rank), equals(t.sense), acquire)) return false;
        break;
      }
      if (!opponent(t.rank, bit)) continue;  // a bye
      // Pairs with the loser's store.
      if (!m.await(defeat(t.rank, round), equals(t.sense), acquire)) return false;
    }
    if (t.rank == 0 && !m.all_arrived()) return false;
    while (round-- > 0) {
      const unsigned bit = 1U << round;
      if (!opponent(t.rank, bit)) continue;
      m.store(wakeup(t.rank + bit), t.sense, release);  // pairs with the loser's await
    }
    return true;
  }

 private:
  bool opponent(unsigned rank, unsigned bit) const { return bit < participants_ - rank; }
  auto& defeat(unsigned winner, unsigned round) const { return cells_.of(winner, round); }
  auto& wakeup(unsigned loser) const { return cells_.of(loser, rounds_); }

  unsigned participants_;
  unsigned rounds_;
  typename M::Cells cells_;
};

}  // namespace muster
