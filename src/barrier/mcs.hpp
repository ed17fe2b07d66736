// SPDX-License-Identifier: BSD-3-Clause
// MCS tree barrier. Arrivals climb a tree of four children a rank, each child telling its parent in
// a flag of its own; the release comes down a tree of two children a rank. Every flag has one
// writer and one reader. Flags carry the episode's sense, so that none has to be reset (the
// original resets its child-not-ready words).
//
// Cost: P - 1 stores up, P - 1 stores down, a chain of log4 P + log2 P: O(log P).
// Source: Mellor-Crummey and Scott, ACM TOCS 9(1), 1991, algorithm 11; `shm-mcs` of [K22].
//
// Invariants:
// 1. Rank r has arrived in its parent's flag only after all of r's children arrived in r's.
// 2. A flag is next written after its reader has left the episode and arrived again: it never skips
//    a sense.
#pragma once

#include <vector>

#include "barrier/shape.hpp"

namespace muster {

template <Machine M>
class Mcs {
 public:
  static constexpr Traits traits{"mcs", Champion::rank0, false,
                                 "P - 1 stores up a tree of four, P - 1 down a tree of two",
                                 "Mellor-Crummey and Scott 1991, algorithm 11"};

  struct Ticket {
    unsigned rank;
    Word sense = 0;
    std::vector<typename M::Cell*> children;
  };

  static Layout layout(const Shape&) { return {.global_cells = 0, .cells_per_rank = fan_in + 1}; }

  Mcs(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants), cells_(cells) {}

  void prepare(M&) const {}

  Ticket ticket(unsigned rank) const {
    Ticket t{.rank = rank, .children = {}};
    for (unsigned c = 0; c < fan_in && fan_in * rank + c + 1 < participants_; ++c) {
      t.children.push_back(&cells_.of(rank, c));
    }
    return t;
  }

  bool wait(M& m, Ticket& t) const {
    t.sense ^= 1;
    if (!m.await_all(t.children, equals(t.sense), acquire))
      return false;  // pairs with each child's arrival
    if (t.rank == 0) {
      if (!m.all_arrived()) return false;
    } else {
      m.store(arrival(t.rank), t.sense, release);  // pairs with the parent's await_all
      if (!m.await(wakeup(t.rank), equals(t.sense), acquire))
        return false;  // pairs with the store below
    }
    for (unsigned child = fan_out * t.rank + 1; child <= fan_out * t.rank + fan_out; ++child) {
      if (child < participants_)
        m.store(wakeup(child), t.sense, release);  // pairs with the child's await above
    }
    return true;
  }

 private:
  static constexpr unsigned fan_in = 4;
  static constexpr unsigned fan_out = 2;

  auto& arrival(unsigned rank) const { return cells_.of((rank - 1) / fan_in, (rank - 1) % fan_in); }
  auto& wakeup(unsigned rank) const { return cells_.of(rank, fan_in); }

  unsigned participants_;
  typename M::Cells cells_;
};

}  // namespace muster
