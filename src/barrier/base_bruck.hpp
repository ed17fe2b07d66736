// SPDX-License-Identifier: BSD-3-Clause
// Bruck's algorithm over messages: dissemination, in round k rank i sends to rank i + 2^k (mod P)
// and receives from rank i - 2^k.
//
// Cost: P log2 P messages, a chain of log2 P: O(log P), for any P.
// Source: `base-bruck` of [K22]; Bruck et al., IEEE TPDS 8(11), 1997.
//
// Invariant: after round k a rank has heard, through others, of the 2^(k+1) - 1 ranks before it.
#pragma once

#include "barrier/base.hpp"

namespace muster {

template <Machine M>
class BaseBruck : public OverMessages<M> {
 public:
  using OverMessages<M>::OverMessages;
  using typename OverMessages<M>::Ticket;
  static constexpr Traits traits{"base-bruck", Champion::nobody, false,
                                 "P log P messages, a chain of log P", "Bruck et al. 1997"};

  bool wait(M& m, Ticket& t) const {
    const unsigned ranks = this->participants_;
    for (unsigned distance = 1; distance < ranks; distance *= 2) {
      const unsigned to = t.rank < ranks - distance ? t.rank + distance : t.rank + distance - ranks;
      const unsigned from = t.rank >= distance ? t.rank - distance : t.rank + ranks - distance;
      this->send(m, t, to);
      if (!this->receive(m, t, from)) return false;
    }
    return true;
  }
};

}  // namespace muster
