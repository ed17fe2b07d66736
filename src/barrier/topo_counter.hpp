// SPDX-License-Identifier: BSD-3-Clause
// Counters over the group tree: the hierarchical barrier for more participants than PUs, and for
// those whose arrive and depart are called apart. Each group of [K22] has a counter; the last to
// arrive in a group, whoever that is, counts itself in at the group above, and whoever completes
// the top reverses the global sense. No fixed leader has to be scheduled before the others can go
// on, and one that has completed its own core's group knows that giving up its PU can help nobody:
// it polls, and each core makes one context switch less an episode. Additions on one line come one
// after another, so a group of more than `radix` members has a tree of counters.
//
// Cost: one atomic addition a rank on a line of `radix` ranks, one a line above; one line read by
// all. Source: a combining tree (Yew, Tzeng and Lawrie 1987) over the groups of Kurnosov 2022,
// section 2.1.
//
// Invariants:
// 1. Between episodes every counter is 0 and every ticket's sense equals the global one.
// 2. A counter is reset by the one that completed it, before it counts above: the release of the
//    sense, which every arrival of the next episode acquired, is later than all resets.
#pragma once

#include <algorithm>
#include <vector>

#include "barrier/compose.hpp"
#include "barrier/shape.hpp"

namespace muster {

template <Machine M>
class TopoCounter {
 public:
  static constexpr Traits traits{
      "topo-counter",
      Champion::last_to_arrive,
      true,
      "one atomic addition a rank on a line of RADIX ranks, one a line above",
      "combining tree (Yew, Tzeng and Lawrie 1987) over the groups of Kurnosov 2022",
      4};

  struct Step {
    typename M::Cell* count;
    Word members;
    Awaited awaited;  ///< by who completes it
  };
  struct Ticket {
    Word sense = 0;
    Awaited awaited = Awaited::anyone;
    /// Bottom up: the counters from this rank to the top, those of one member left out.
    std::vector<Step> path;
  };

  static Layout layout(const Shape&) { return {.global_cells = 1, .cells_per_rank = 1}; }

  /// `cell`: which one of each rank's.
  TopoCounter(const Shape& shape, typename M::Cells cells, unsigned cell = 0)
      : levels_(groups_or_one(shape.groups, shape.participants).levels),
        radix_(shape.radix),
        cell_(cell),
        cells_(cells) {}

  void prepare(M&) const {}

  Ticket ticket(unsigned rank) const {
    Ticket t;
    for (const GroupLevel& level : levels_) {
      for (const Group& group : level.groups) {
        const auto found = std::lower_bound(group.members.begin(), group.members.end(), rank);
        if (found == group.members.end() || *found != rank) continue;
        climb(t.path, group, static_cast<unsigned>(found - group.members.begin()));
        rank = group.leader();  // stands for this rank at the levels above
        break;
      }
    }
    return t;
  }

  bool arrive(M& m, Ticket& t, Awaited awaited = Awaited::anyone) const {
    t.sense ^= 1;
    t.awaited = awaited;
    for (const Step& step : t.path) {
      // Releases what this one and those it stands for wrote; the last one acquires it.
      const Word before = m.fetch_add(*step.count, 1, acq_rel);
      if (before + 1 != step.members) return true;
      // Before the next addition or the release below: invariant 2.
      m.store(*step.count, 0, relaxed);
      if (step.awaited == Awaited::other_pus) t.awaited = Awaited::other_pus;
    }
    if (!m.all_arrived()) return false;
    m.store(sense(), t.sense, release);  // pairs with everyone's await
    return true;
  }

  bool depart(M& m, Ticket& t) const {
    return m.await(sense(), equals(t.sense), acquire, t.awaited);  // pairs with the release above
  }

  bool wait(M& m, Ticket& t) const { return arrive(m, t) && depart(m, t); }

 private:
  /// A counter is the cell of the first rank under its second child: no other counter's. Who has
  /// completed a group's last one knows that whoever shares its PU has arrived.
  void climb(std::vector<Step>& path, const Group& group, std::size_t index) const {
    std::size_t each = 1;  // members that a child of the counter stands for
    for (std::size_t n = group.members.size(); n > 1; n = (n + radix_ - 1) / radix_) {
      const std::size_t first = index / radix_ * radix_;
      const std::size_t children = std::min<std::size_t>(radix_, n - first);
      if (children > 1) {
        path.push_back({&cells_.of(group.members[(first + 1) * each], cell_),
                        static_cast<Word>(children),
                        n <= radix_ ? Awaited::other_pus : Awaited::anyone});
      }
      index /= radix_;
      each *= radix_;
    }
  }

  auto& sense() const { return cells_.global(0); }

  std::vector<GroupLevel> levels_;
  unsigned radix_;
  unsigned cell_;
  typename M::Cells cells_;
};

}  // namespace muster
