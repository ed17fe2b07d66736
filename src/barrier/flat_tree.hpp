// SPDX-License-Identifier: BSD-3-Clause
// Flat tree, the two flat barriers of [K22]. Each rank counts its episodes in a counter of its own;
// rank 0 polls them all, their misses overlapped. `sense-reversing-counter` releases everybody by
// one global sense; `sense-reversing-gr` (gather, release) writes a flag of each rank's own, so
// that nobody shares a line with more than one other.
//
// Cost: P - 1 stores to lines that rank 0 gathers, then one line read by P - 1 ranks, or P - 1 more
// stores: O(P), chain of two. Source: Graham and Shipman, EuroPVM/MPI 2008;
// `shm-sense-reversing-counter` and `shm-sense-reversing-gr` of [K22].
//
// Invariants:
// 1. A rank's counter holds the number of the last episode it arrived at; it is at most one ahead
//    of rank 0's.
// 2. Rank 0 releases episode e after every counter has reached e. Comparisons are modular: counters
//    wrap.
#pragma once

#include <vector>

#include "barrier/shape.hpp"

namespace muster {

template <Machine M>
struct FlatTicket {
  unsigned rank;
  Word episode;
  Word sense = 0;
  std::vector<typename M::Cell*> counters;  // rank 0: everyone else's
};

/// The gathering half, common to both. `counter` is cell 0 of each rank.
template <Machine M>
class FlatTree {
 public:
  using Ticket = FlatTicket<M>;

  FlatTree(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants), first_episode_(shape.first_episode), cells_(cells) {}

  void prepare(M& m) const {
    for (unsigned r = 1; r < participants_; ++r) m.store(cells_.of(r, 0), first_episode_, relaxed);
  }

  Ticket ticket(unsigned rank) const {
    Ticket t{.rank = rank, .episode = first_episode_, .counters = {}};
    for (unsigned r = 1; rank == 0 && r < participants_; ++r)
      t.counters.push_back(&cells_.of(r, 0));
    return t;
  }

 protected:
  bool gather(M& m, Ticket& t) const {
    t.episode += 1;
    t.sense ^= 1;
    if (t.rank != 0) {
      m.store(cells_.of(t.rank, 0), t.episode, release);  // pairs with rank 0's await_all
      return true;
    }
    if (!m.await_all(t.counters, at_least(t.episode), acquire))
      return false;  // pairs with each rank's store above
    return m.all_arrived();
  }

  unsigned participants_;
  Word first_episode_;
  typename M::Cells cells_;
};

template <Machine M>
class SenseReversingCounter : public FlatTree<M> {
 public:
  using typename FlatTree<M>::Ticket;
  using FlatTree<M>::FlatTree;
  static constexpr Traits traits{"sense-reversing-counter", Champion::rank0, false,
                                 "P - 1 stores gathered by rank 0, one line read by all",
                                 "flat tree; Graham and Shipman 2008"};

  static Layout layout(const Shape&) { return {.global_cells = 1, .cells_per_rank = 1}; }

  bool wait(M& m, Ticket& t) const {
    if (!this->gather(m, t)) return false;
    if (t.rank != 0)
      return m.await(sense(), equals(t.sense), acquire);  // pairs with the store below
    m.store(sense(), t.sense, release);                   // pairs with the await above
    return true;
  }

 private:
  auto& sense() const { return this->cells_.global(0); }
};

template <Machine M>
class SenseReversingGr : public FlatTree<M> {
 public:
  using typename FlatTree<M>::Ticket;
  using FlatTree<M>::FlatTree;
  static constexpr Traits traits{"sense-reversing-gr", Champion::rank0, false,
                                 "P - 1 stores gathered by rank 0, P - 1 stores by rank 0",
                                 "flat tree with gather and release; Graham and Shipman 2008"};

  static Layout layout(const Shape&) { return {.global_cells = 0, .cells_per_rank = 2}; }

  bool wait(M& m, Ticket& t) const {
    if (!this->gather(m, t)) return false;
    if (t.rank != 0)
      return m.await(go(t.rank), equals(t.sense), acquire);  // pairs with the store below
    for (unsigned r = 1; r < this->participants_; ++r) {
      m.store(go(r), t.sense, release);  // pairs with rank r's await above
    }
    return true;
  }

 private:
  auto& go(unsigned rank) const { return this->cells_.of(rank, 1); }
};

}  // namespace muster
