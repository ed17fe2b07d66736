// SPDX-License-Identifier: BSD-3-Clause
// Sense reversal for more participants than PUs, of whom nobody knows where they sit. Each also
// counts itself in on the PU that it happens to run on. As many as in the last episode: then all
// who share this PU have arrived, giving it up can help nobody, and the wait polls instead of
// yielding: one context switch less for each PU and episode, as `topo-counter` over cores has it,
// without bindings. The count is a hint, and the machine's (machine/pu_count.hpp): where it is
// wrong a wait yields in vain, or polls in vain for a while.
//
// Cost: that of `sense-reversing`, and one store to a line that stays in the PU's own cache.
// Source: Mellor-Crummey and Scott, ACM TOCS 9(1), 1991, algorithm 7; the counts are ours.
//
// Invariants:
// 1. Those of sense_reversing.hpp: order and safety are its alone.
// 2. The count decides nothing but how a wait waits.
#pragma once

#include "barrier/sense_reversing.hpp"

namespace muster {

template <Machine M>
class SenseReversingPu {
 public:
  static constexpr Traits traits{
      "sense-reversing-pu", Champion::last_to_arrive, true,
      "P atomic additions on one line, in sequence; a store to a line of one's own PU",
      "Mellor-Crummey and Scott 1991, algorithm 7; counts of arrivals by PU"};

  struct Ticket : SenseReversing<M>::Ticket {
    Word episode = 0;
    Awaited awaited = Awaited::anyone;
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = SenseReversing<M>::layout(shape).global_cells, .cells_per_rank = 1};
  }

  SenseReversingPu(const Shape& shape, typename M::Cells cells)
      : participants_(shape.participants), cells_(cells), barrier_(shape, cells) {}

  void prepare(M&) const {}
  Ticket ticket(unsigned) const { return {}; }

  bool arrive(M& m, Ticket& t) const {
    // There are lines for as many PUs as participants.
    t.awaited = m.count_in_on_pu(cells_, participants_, ++t.episode);
    return barrier_.arrive(m, t);
  }

  bool depart(M& m, Ticket& t) const { return barrier_.depart(m, t, t.awaited); }

  bool wait(M& m, Ticket& t) const { return arrive(m, t) && depart(m, t); }

 private:
  unsigned participants_;
  typename M::Cells cells_;
  SenseReversing<M> barrier_;
};

}  // namespace muster
