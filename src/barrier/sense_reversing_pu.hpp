// SPDX-License-Identifier: BSD-3-Clause
// Sense reversal for more participants than PUs, of whom nobody knows where they sit. Each also
// counts itself in on the PU that it happens to run on. As many as in the last episode: then all
// who share this PU have arrived, giving it up can help nobody, and the wait polls instead of
// yielding: one context switch less for each PU and episode, as `topo-counter` over cores has it,
// without bindings. Counts are hints: a participant that was moved, or an update that was lost,
// makes a wait yield in vain, or poll in vain for a while, and the next episode counts anew.
//
// Cost: that of `sense-reversing`, and one store to a line that stays in the PU's own cache.
// Source: Mellor-Crummey and Scott, ACM TOCS 9(1), 1991, algorithm 7; the counts are ours.
//
// Invariants:
// 1. Those of sense_reversing.hpp: order and safety are its alone.
// 2. What is read from a count decides nothing but how a wait waits.
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
    t.awaited = count_in(m, ++t.episode) ? Awaited::other_pus : Awaited::anyone;
    return barrier_.arrive(m, t);
  }

  bool depart(M& m, Ticket& t) const { return barrier_.depart(m, t, t.awaited); }

  bool wait(M& m, Ticket& t) const { return arrive(m, t) && depart(m, t); }

 private:
  /// A PU's count in one word: the episode modulo 4, how many arrived there in its last one, how
  /// many in this one so far. More than 2^15 on one PU mix up the hints, and no more.
  struct Count {
    static constexpr unsigned bits = 15;
    static constexpr Word mask = (Word{1} << bits) - 1;

    Word word;

    Word episode() const { return word >> 2 * bits; }
    Word before() const { return word >> bits & mask; }
    Word now() const { return word & mask; }
    static Count first(Word episode, Word before) {
      return {episode << 2 * bits | (before & mask) << bits};
    }
  };

  /// True if this participant is the last of as many as arrived on its PU in the episode before.
  bool count_in(M& m, Word episode) const {
    // There are lines for as many PUs as participants: with more PUs, some share.
    auto& here = cells_.of(m.pu() % participants_, 0);
    Count count{m.load(here, relaxed)};
    if (count.episode() != (episode & 3)) count = Count::first(episode & 3, count.now());
    ++count.word;
    m.store(here, count.word, relaxed);
    return count.now() == count.before();
  }

  unsigned participants_;
  typename M::Cells cells_;
  SenseReversing<M> barrier_;
};

}  // namespace muster
