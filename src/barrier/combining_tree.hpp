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
// was released.
#pragma once

#include <algorithm>

#include "barrier/shape.hpp"

namespace muster {

template <Machine M>
class CombiningTree {
 public:
  static constexpr Traits traits{
      "combining-tree", Champion::last_to_arrive, false,
      "atomic additions on P/(radix - 1) lines, a chain of log P up and down",
      "Yew, Tzeng and Lawrie 1987; Mellor-Crummey and Scott 1991, algorithm 8"};

  struct Ticket {
    unsigned rank;
    Word sense = 0;
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 0, .cells_per_rank = 2 * std::max(1U, depth(shape))};
  }

  CombiningTree(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants),
        radix_(shape.radix),
        depth_(depth(shape)),
        cells_(cells) {}

  void prepare(M&) const {}
  Ticket ticket(unsigned rank) const { return {rank}; }

  bool wait(M& m, Ticket& t) const {
    t.sense ^= 1;
    unsigned level = 0;
    for (; level < depth_; ++level) {
      const Vertex v = vertex(t.rank, level);
      if (v.children == 1) continue;
      // Releases this subtree's writes; the last at the vertex acquires those of all its subtrees.
      const Word before = m.fetch_add(count(v, level), 1, acq_rel);
      if (before + 1 == v.children) continue;
      if (!m.await(sense(v, level), equals(t.sense), acquire))
        return false;  // pairs with the release below
      break;
    }
    if (level == depth_ && !m.all_arrived()) return false;
    while (level-- > 0) {
      const Vertex v = vertex(t.rank, level);
      if (v.children == 1) continue;
      m.store(count(v, level), 0, relaxed);        // before the release below: invariant 2
      m.store(sense(v, level), t.sense, release);  // pairs with the await above
    }
    return true;
  }

 private:
  struct Vertex {
    unsigned home;      // the lowest rank below it: its cells are in that rank's block
    unsigned children;  // vertices of the level below, or ranks, that report to it
  };

  static unsigned depth(const Shape& shape) {
    unsigned levels = 0;
    for (std::uint64_t reach = 1; reach < shape.participants; reach *= shape.radix) ++levels;
    return levels;
  }

  Vertex vertex(unsigned rank, unsigned level) const {
    std::uint64_t below = 1;  // ranks below one child
    for (unsigned l = 0; l < level; ++l) below *= radix_;
    const std::uint64_t home = rank / (below * radix_) * (below * radix_);
    const std::uint64_t ranks = std::min<std::uint64_t>(participants_ - home, below * radix_);
    return {static_cast<unsigned>(home), static_cast<unsigned>((ranks + below - 1) / below)};
  }

  auto& count(Vertex v, unsigned level) const { return cells_.of(v.home, 2 * level); }
  auto& sense(Vertex v, unsigned level) const { return cells_.of(v.home, 2 * level + 1); }

  unsigned participants_;
  unsigned radix_;
  unsigned depth_;
  typename M::Cells cells_;
};

}  // namespace muster
