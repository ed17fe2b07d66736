// SPDX-License-Identifier: BSD-3-Clause
// Linear barrier over messages. Everyone tells rank 0, which hears whoever comes first and, when it
// has heard all, tells everyone.
//
// Cost: 2(P - 1) messages, all through rank 0: O(P).
// Source: `base-linear` of [K22]; the textbook's.
//
// Invariant: rank 0 sends only after it has received from all.
#pragma once

#include "barrier/base.hpp"

namespace muster {

template <Machine M>
class BaseLinear : public OverMessages<M> {
 public:
  using OverMessages<M>::OverMessages;
  using typename OverMessages<M>::Ticket;
  static constexpr Traits traits{"base-linear", Champion::rank0, false,
                                 "2(P - 1) messages, all through rank 0", "textbook"};

  bool wait(M& m, Ticket& t) const {
    if (t.rank != 0) {
      this->send(m, t, 0);
      return this->receive(m, t, 0);
    }
    if (!this->receive_from_others(m, t)) return false;
    if (!m.all_arrived()) return false;
    for (unsigned r = 1; r < this->participants_; ++r) this->send(m, t, r);
    return true;
  }
};

}  // namespace muster
