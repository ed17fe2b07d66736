// SPDX-License-Identifier: BSD-3-Clause
// Dissemination. In round k rank i tells rank i + 2^k (mod P) and waits for rank i - 2^k; after
// log2 P rounds everyone has heard of everyone, with no champion and no release. For two
// participants it is an exchange of two flags, both at once: a chain of one line transfer.
//
// Cost: P log2 P stores, a chain of log2 P: O(log P).
// Source: Hensgen, Finkel and Manber, IJPP 17(1), 1988; Mellor-Crummey and Scott, ACM TOCS 9(1),
// 1991, algorithm 9; `shm-dissemination` of [K22].
//
// Invariants:
// 1. Two sets of flags alternate (parity): a fast partner's next signal never overwrites one not
//    yet seen.
// 2. The sense reverses every second episode, when the same set comes round again, so flags need no
//    reset.
#pragma once

#include <vector>

#include "barrier/shape.hpp"

namespace muster {

template <Machine M>
class Dissemination {
 public:
  static constexpr Traits traits{
      "dissemination", Champion::nobody, false, "P log P stores, a chain of log P",
      "Hensgen, Finkel and Manber 1988; Mellor-Crummey and Scott 1991, algorithm 9"};

  /// By parity: the partner's flag that this rank sets, and its own that it waits for.
  struct Round {
    typename M::Cell* partners[2];
    typename M::Cell* own[2];
  };
  struct Ticket {
    Word parity = 0;
    Word sense = 1;
    std::vector<Round> rounds;
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 0, .cells_per_rank = 2 * rounds_of(shape.participants)};
  }

  Dissemination(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants), rounds_(rounds_of(shape.participants)), cells_(cells) {}

  void prepare(M&) const {}

  Ticket ticket(unsigned rank) const {
    Ticket t{.rounds = {}};
    for (unsigned round = 0; round < rounds_; ++round) {
      const std::uint64_t told = rank + (std::uint64_t{1} << round);
      const auto partner = static_cast<unsigned>(told % participants_);
      t.rounds.push_back({{&flag(partner, 0, round), &flag(partner, 1, round)},
                          {&flag(rank, 0, round), &flag(rank, 1, round)}});
    }
    return t;
  }

  bool wait(M& m, Ticket& t) const {
    const Word parity = t.parity;
    const Word sense = t.sense;
    // Before the rounds, not after: the next episode's first store waits for nothing but the code.
    t.sense ^= parity;
    t.parity ^= 1;
    for (const Round& round : t.rounds) {
      // Pairs with the partner's await, which is this line's below.
      m.store(*round.partners[parity], sense, release);
      if (!m.await(*round.own[parity], equals(sense), acquire, Awaited::partner)) return false;
    }
    // All have come, so all are done with the last episode's flags: their lines come to who writes
    // them next while nobody waits for that.
    for (const Round& round : t.rounds) m.expect_store(*round.partners[parity ^ 1]);
    return true;
  }

 private:
  auto& flag(unsigned rank, Word parity, unsigned round) const {
    return cells_.of(rank, parity * rounds_ + round);
  }

  unsigned participants_;
  unsigned rounds_;
  typename M::Cells cells_;
};

}  // namespace muster
