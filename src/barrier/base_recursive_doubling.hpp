// SPDX-License-Identifier: BSD-3-Clause
// Recursive doubling over messages. In round k rank i exchanges messages with the rank whose number
// differs in bit k. Ranks beyond the largest power of two hand over to a partner below it first,
// and hear from it last, by a synchronous send: see base_double_ring.hpp.
//
// Cost: P log2 P messages, a chain of log2 P, and two more where P is no power of two: O(log P).
// Source: `base-recursive-doubling` of [K22]; Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005.
//
// Invariant: after round k a rank has heard, through others, of its whole block of 2^(k+1) ranks.
#pragma once

#include "barrier/base.hpp"

namespace muster {

template <Machine M>
class BaseRecursiveDoubling : public OverMessages<M> {
 public:
  using OverMessages<M>::OverMessages;
  using typename OverMessages<M>::Ticket;
  static constexpr Traits traits{"base-recursive-doubling", Champion::nobody, false,
                                 "P log P messages, a chain of log P",
                                 "Thakur, Rabenseifner and Gropp 2005"};

  bool wait(M& m, Ticket& t) const {
    unsigned block = 1;  // the largest power of two that fits
    while (block <= this->participants_ / 2) block *= 2;
    if (t.rank >= block) {
      this->send(m, t, t.rank - block);
      return this->receive_and_confirm(m, t, t.rank - block);
    }
    const bool stands_for_another = t.rank + block < this->participants_;
    if (stands_for_another && !this->receive(m, t, t.rank + block)) return false;
    for (unsigned bit = 1; bit < block; bit *= 2) {
      this->send(m, t, t.rank ^ bit);
      if (!this->receive(m, t, t.rank ^ bit)) return false;
    }
    return !stands_for_another || this->send_synchronously(m, t, t.rank + block);
  }
};

}  // namespace muster
