// SPDX-License-Identifier: BSD-3-Clause
// Combining tree with sense reversal. Ranks are the leaves of a tree of counters with `radix`
// children each; the last to arrive at a vertex climbs on, the others wait there. Whoever completes
// the root turns back and releases, vertex by vertex, those it left.
//
// Cost: about P(1 + 1/radix + ...) atomic additions on P/(radix - 1) lines, a chain of log_radix P
// up and down: O(log P). Source: Yew, Tzeng and Lawrie, IEEE ToC C-36(4), 1987; Mellor-Crummey and
// Scott, ACM TOCS 9(1), 1991, algorithm 8; `shm-combining-tree` of [K22] (binary).
//
// Invariants:
// 1. Between episodes every counter is 0 and every vertex's sense equals every ticket's.
// 2. A vertex is reset, then released, by the one that climbed from it, after everything above it
//    was released.
#pragma once

#include <algorithm>
#include <vector>

#include "barrier/shape.hpp"

namespace muster {

template <Machine M>
class CombiningTree {
 public:
  static constexpr Traits traits{
      "combining-tree",
      Champion::last_to_arrive,
      false,
      "atomic additions on P/(radix - 1) lines, a chain of log P up and down",
      "Yew, Tzeng and Lawrie 1987; Mellor-Crummey and Scott 1991, algorithm 8",
      2};

  struct Vertex {
    typename M::Cell* count;
    typename M::Cell* sense;
    Word children;  // vertices of the level below, or ranks, that report to it
  };
  struct Ticket {
    Word sense = 0;
    /// Bottom up: from this rank to the root, without those of one child.
    std::vector<Vertex> path;
  };

  static Layout layout(const Shape&) { return {.global_cells = 0, .cells_per_rank = 2}; }

  CombiningTree(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants), radix_(shape.radix), cells_(cells) {}

  void prepare(M&) const {}

  /// A vertex covers `reach` ranks from `first` on, `below` of them under each child. Its cells are
  /// those of the first rank under its second child: no other vertex's, and below this one.
  Ticket ticket(unsigned rank) const {
    Ticket t{.path = {}};
    for (std::uint64_t below = 1; below < participants_; below *= radix_) {
      const std::uint64_t reach = below * radix_;
      const std::uint64_t first = rank / reach * reach;
      if (participants_ - first <= below) continue;  // one child
      const std::uint64_t ranks = std::min<std::uint64_t>(participants_ - first, reach);
      const auto home = static_cast<unsigned>(first + below);
      t.path.push_back({&cells_.of(home, 0), &cells_.of(home, 1),
                        static_cast<Word>((ranks + below - 1) / below)});
    }
    return t;
  }

  bool wait(M& m, Ticket& t) const {
    t.sense ^= 1;
    std::size_t climbed = 0;
    for (; climbed < t.path.size(); ++climbed) {
      const Vertex& v = t.path[climbed];
      // Releases this subtree's writes; the last at the vertex acquires those of all its subtrees.
      const Word before = m.fetch_add(*v.count, 1, acq_rel);
      if (before + 1 == v.children) continue;
      // Pairs with the release below, by the one that climbed on.
      if (!m.await(*v.sense, equals(t.sense), acquire)) return false;
      break;
    }
    if (climbed == t.path.size() && !m.all_arrived()) return false;
    while (climbed-- > 0) {
      const Vertex& v = t.path[climbed];
      m.store(*v.count, 0, relaxed);        // before the release below: invariant 2
      m.store(*v.sense, t.sense, release);  // pairs with the await above
    }
    return true;
  }

 private:
  unsigned participants_;
  unsigned radix_;
  typename M::Cells cells_;
};

}  // namespace muster
