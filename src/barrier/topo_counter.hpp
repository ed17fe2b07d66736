// SPDX-License-Identifier: BSD-3-Clause
// Counters over the group tree: the hierarchical barrier for more participants than PUs. Each group
// of [K22] has a counter; the last to arrive in a group, whoever that is, counts itself in at the
// group above, and whoever completes the top reverses the global sense. No fixed leader has to be
// scheduled before the others can go on, and one that has completed its own core's group knows that
// giving up its PU can help nobody: it polls, and each core makes one context switch less an
// episode.
//
// Cost: one atomic addition a rank on its group's line, one a group above; one line read by all.
// Source: a combining tree (Yew, Tzeng and Lawrie 1987) over the groups of Kurnosov 2022,
// section 2.1.
//
// Invariants:
// 1. Between episodes every counter is 0 and every ticket's sense equals the global one.
// 2. A group's counter is reset by the one that completed it, before it counts at the group above:
//    the release of the sense, which every arrival of the next episode acquired, is later than all
//    resets.
#pragma once

#include <algorithm>
#include <vector>

#include "barrier/shape.hpp"

namespace muster {

template <Machine M>
class TopoCounter {
 public:
  static constexpr Traits traits{
      "topo-counter", Champion::last_to_arrive, false,
      "one atomic addition a rank on its group's line, one a group above",
      "combining tree (Yew, Tzeng and Lawrie 1987) over the groups of Kurnosov 2022"};

  struct Step {
    typename M::Cell* count;
    Word members;
  };
  struct Ticket {
    Word sense = 0;
    /// Bottom up: the groups from this rank to the top, those of one member left out.
    std::vector<Step> path;
  };

  static Layout layout(const Shape& shape) {
    const std::size_t levels = shape.groups != nullptr ? shape.groups->levels.size() : 0;
    return {.global_cells = 1, .cells_per_rank = levels > 0 ? static_cast<unsigned>(levels) : 1};
  }

  TopoCounter(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants), cells_(cells) {
    if (shape.groups != nullptr) groups_ = *shape.groups;
  }

  void prepare(M&) const {}

  Ticket ticket(unsigned rank) const {
    Ticket t;
    if (groups_.levels.empty() && participants_ > 1)
      t.path.push_back({&cells_.of(0, 0), participants_});
    unsigned below = rank;  // the leader that stands for this rank at the next level
    for (unsigned level = 0; level < groups_.levels.size(); ++level) {
      for (const Group& group : groups_.levels[level].groups) {
        if (!std::binary_search(group.members.begin(), group.members.end(), below)) continue;
        if (group.members.size() > 1) {
          t.path.push_back(
              {&cells_.of(group.leader(), level), static_cast<Word>(group.members.size())});
        }
        below = group.leader();
        break;
      }
    }
    return t;
  }

  bool wait(M& m, Ticket& t) const {
    t.sense ^= 1;
    Awaited awaited = Awaited::anyone;
    for (const Step& step : t.path) {
      // Releases what this one and those it stands for wrote; the last in the group acquires it.
      const Word before = m.fetch_add(*step.count, 1, acq_rel);
      if (before + 1 != step.members) {
        return m.await(sense(), equals(t.sense), acquire, awaited);  // pairs with the release below
      }
      // Before the next addition or the release below: invariant 2.
      m.store(*step.count, 0, relaxed);
      awaited = Awaited::other_pus;  // its group, and so whoever shares its PU, has arrived
    }
    if (!m.all_arrived()) return false;
    m.store(sense(), t.sense, release);  // pairs with everyone's await
    return true;
  }

 private:
  auto& sense() const { return cells_.global(0); }

  unsigned participants_;
  typename M::Cells cells_;
  GroupTree groups_;
};

}  // namespace muster
