// SPDX-License-Identifier: BSD-3-Clause
// Counters for more participants than PUs, of whom nobody knows where they sit: a tree of them by
// rank. Each also counts itself in on the PU that it happens to run on. As many as in the last
// episode: then all who share this PU have arrived, giving it up can help nobody, and the wait
// polls instead of yielding: one context switch less for each PU and episode, as `topo-counter`
// over cores has it, without bindings. The count is a hint, and the machine's
// (machine/pu_count.hpp): where it is wrong a wait yields in vain, or polls in vain for a while.
//
// Cost: that of `topo-counter` without groups, and one store to a line that stays in the PU's own
// cache. Source: Mellor-Crummey and Scott, ACM TOCS 9(1), 1991, algorithm 7; Yew, Tzeng and Lawrie
// 1987; the counts by PU are ours.
//
// Invariants:
// 1. Those of topo_counter.hpp: order and safety are its alone.
// 2. The count decides nothing but how a wait waits.
#pragma once

#include "barrier/topo_counter.hpp"

namespace muster {

template <Machine M>
class SenseReversingPu {
 public:
  static constexpr Traits traits{
      "sense-reversing-pu",
      Champion::last_to_arrive,
      true,
      "one atomic addition a rank on a line of RADIX ranks, one a line above; a store to a line of "
      "one's own PU",
      "Mellor-Crummey and Scott 1991, algorithm 7; Yew, Tzeng and Lawrie 1987; counts by PU",
      4};

  struct Ticket : TopoCounter<M>::Ticket {
    Word episode = 0;
  };

  static Layout layout(const Shape&) { return {.global_cells = 1, .cells_per_rank = 2}; }

  SenseReversingPu(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants), cells_(cells), counters_(shape, cells, 1) {}

  void prepare(M&) const {}
  Ticket ticket(unsigned rank) const { return {counters_.ticket(rank)}; }

  bool arrive(M& m, Ticket& t) const {
    // There are lines for as many PUs as participants.
    return counters_.arrive(m, t, m.count_in_on_pu(cells_, participants_, ++t.episode));
  }

  bool depart(M& m, Ticket& t) const { return counters_.depart(m, t); }

  bool wait(M& m, Ticket& t) const { return arrive(m, t) && depart(m, t); }

 private:
  unsigned participants_;
  typename M::Cells cells_;
  TopoCounter<M> counters_;
};

}  // namespace muster
