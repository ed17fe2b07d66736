// SPDX-License-Identifier: BSD-3-Clause
// The hierarchical barrier of [K22]. Ranks that share a unit of a memory level (L2, L3, NUMA node,
// package) form a group, whose leader gathers its members' counters by a flat tree; leaders form
// the groups of the next level; rank 0, the last leader, reverses a global sense on which all
// others wait. What crosses a NUMA node or package is one counter a group, not one a rank.
//
// Cost: one store a rank and level it is a member at, gathered inside the level's unit, then one
// line read by all: O(L P). Source: Kurnosov, Vestnik SibSUTIS 16(2), 2022, section 2.2
// (MPI_Barrier, BarrierGroupLevel).
//
// Invariants:
// 1. A member's counter of a level reaches e only after everyone below it has arrived at episode e.
// 2. Rank 0 leads every group it is in (groups are led by their lowest rank), so it is the one that
//    releases.
// 3. A counter is at most one ahead of its leader's. Comparisons are modular: counters wrap.
//
// [K22] lets a leader count in its own group as well; here the ticket's episode is that count,
// which nobody else reads.
#pragma once

#include <algorithm>
#include <vector>

#include "barrier/shape.hpp"

namespace muster {

template <Machine M>
class Topo {
 public:
  static constexpr Traits traits{
      "topo", Champion::rank0, false,
      "one store per member and level, gathered within the unit; one line read by all",
      "Kurnosov 2022, section 2.2"};

  struct Ticket {
    unsigned rank;
    Word episode;
    Word sense = 0;
    /// Bottom up: the other members' counters of each group it leads.
    std::vector<std::vector<typename M::Cell*>> led;
  };

  static Layout layout(const Shape&) { return {.global_cells = 1, .cells_per_rank = 1}; }

  Topo(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants), first_episode_(shape.first_episode), cells_(cells) {
    if (shape.groups != nullptr) groups_ = *shape.groups;
  }

  void prepare(M& m) const {
    for (unsigned r = 1; r < participants_; ++r) m.store(counter(r), first_episode_, relaxed);
  }

  Ticket ticket(unsigned rank) const {
    Ticket t{.rank = rank, .episode = first_episode_, .led = {}};
    if (groups_.levels.empty() && rank == 0) {
      t.led.emplace_back();
      for (unsigned r = 1; r < participants_; ++r) t.led.back().push_back(&counter(r));
    }
    for (const GroupLevel& level : groups_.levels) {
      for (const Group& group : level.groups) {
        if (group.leader() != rank || group.members.size() == 1) continue;
        t.led.emplace_back();
        for (const unsigned member : group.members) {
          if (member != rank) t.led.back().push_back(&counter(member));
        }
      }
    }
    return t;
  }

  bool wait(M& m, Ticket& t) const {
    t.episode += 1;
    t.sense ^= 1;
    for (const auto& members : t.led) {
      if (!m.await_all(members, at_least(t.episode), acquire))
        return false;  // pairs with each member's store below
    }
    if (t.rank == 0) {
      if (!m.all_arrived()) return false;
      m.store(sense(), t.sense, release);  // pairs with everyone's await below
      return true;
    }
    m.store(counter(t.rank), t.episode, release);       // pairs with its leader's await_all
    return m.await(sense(), equals(t.sense), acquire);  // pairs with rank 0's release
  }

 private:
  // A rank is a plain member at one level only, the one where it stops leading: one counter a rank
  // serves all levels.
  auto& counter(unsigned rank) const { return cells_.of(rank, 0); }
  auto& sense() const { return cells_.global(0); }

  unsigned participants_;
  Word first_episode_;
  typename M::Cells cells_;
  GroupTree groups_;
};

}  // namespace muster
