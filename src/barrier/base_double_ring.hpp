// SPDX-License-Identifier: BSD-3-Clause
// Double ring over messages. A token goes round twice: when it comes back to rank 0 all have
// arrived, and when it comes again all have heard so. The sends of the second round are
// synchronous: an MPI that delivers messages in its own calls alone must not let a rank go while
// the one behind it still waits for this rank's message.
//
// Cost: 2P messages, one after another, and P receipts: O(P).
// Source: `base-double-ring` of [K22]; the textbook's.
//
// Invariant: a rank passes the token on only after it has arrived, so the first round is complete
// when, and only when, all have.
#pragma once

#include "barrier/base.hpp"

namespace muster {

template <Machine M>
class BaseDoubleRing : public OverMessages<M> {
 public:
  using OverMessages<M>::OverMessages;
  using typename OverMessages<M>::Ticket;
  static constexpr Traits traits{"base-double-ring", Champion::rank0, false,
                                 "2P messages, one after another", "textbook"};

  bool wait(M& m, Ticket& t) const {
    const unsigned ranks = this->participants_;
    const unsigned left = t.rank == 0 ? ranks - 1 : t.rank - 1;
    const unsigned right = t.rank + 1 == ranks ? 0 : t.rank + 1;
    if (ranks == 1) return m.all_arrived();
    if (t.rank == 0) {
      this->send(m, t, right);
      if (!this->receive(m, t, left) || !m.all_arrived()) return false;
      return this->send_synchronously(m, t, right) && this->receive_and_confirm(m, t, left);
    }
    if (!this->receive(m, t, left)) return false;
    this->send(m, t, right);
    return this->receive_and_confirm(m, t, left) && this->send_synchronously(m, t, right);
  }
};

}  // namespace muster
