// SPDX-License-Identifier: BSD-3-Clause
// Binomial tree over messages, up and down. Going up, in round k the rank whose lowest set bit is
// bit k tells the rank without it; going down, the same messages the other way round, last round
// first.
//
// Cost: 2(P - 1) messages, a chain of 2 log2 P: O(log P).
// Source: `base-tree` of [K22], there "two-phase recursive doubling"; the textbook's.
//
// Invariant: a rank reports to its parent only after all its children have reported to it.
#pragma once

#include "barrier/base.hpp"

namespace muster {

template <Machine M>
class BaseTree : public OverMessages<M> {
 public:
  using OverMessages<M>::OverMessages;
  using typename OverMessages<M>::Ticket;
  static constexpr Traits traits{"base-tree", Champion::rank0, false,
                                 "2(P - 1) messages, a chain of 2 log P", "textbook"};

  bool wait(M& m, Ticket& t) const {
    unsigned round = 0;
    for (; (1U << round) < this->participants_ && (t.rank >> round & 1) == 0; ++round) {
      if (has_child(t.rank, round) && !this->receive(m, t, t.rank + (1U << round))) return false;
    }
    if (t.rank == 0) {
      if (!m.all_arrived()) return false;
    } else {
      this->send(m, t, t.rank - (1U << round));
      if (!this->receive(m, t, t.rank - (1U << round))) return false;
    }
    while (round-- > 0) {
      if (has_child(t.rank, round)) this->send(m, t, t.rank + (1U << round));
    }
    return true;
  }

 private:
  bool has_child(unsigned rank, unsigned round) const {
    return (1U << round) < this->participants_ - rank;
  }
};

}  // namespace muster
