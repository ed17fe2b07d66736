// SPDX-License-Identifier: BSD-3-Clause
// Flat combining. A client publishes its request in its own slot and tries the lock: who gets it
// executes what everybody has published, pass after pass while there is something, and frees it;
// the others wait for their slot to be cleared, or for the lock.
//
// Cost: two line transfers a section executed by another; none while one client is alone.
// Source: Hendler, Incze, Shavit and Tzafrir, SPAA 2010. Publication records are slots here, and
// stay: there are as many as there were clients at once.
//
// Invariants:
// 1. Requests are executed by whoever has the lock (rings.hpp).
// 2. Who has had the lock has had its own request executed.
#pragma once

#include "lock/rings.hpp"

namespace muster::locks {

template <Machine M>
class FlatCombining {
 public:
  static constexpr Traits traits{"flat-combining", Style::combining, false, "two",
                                 "Hendler, Incze, Shavit and Tzafrir 2010"};

  using Ticket = typename Rings<M>::Ticket;

  static Layout layout(const Shape& shape) {
    return {
        .global_cells = 2, .slots = shape.clients, .cells_per_slot = Rings<M>::cells_per_client(1)};
  }
  FlatCombining(const Shape& shape, typename M::Cells cells)
      : passes_(shape.limit), desk_{&cells.global(0), &cells.global(1), {1, cells}, 0} {}
  Ticket ticket(unsigned client) const { return {.client = client}; }

  template <class Work>
  bool execute(M& m, Ticket& t, Work& work) const {
    desk_.enter(m, t);
    typename M::Cell* const entry = desk_.rings.post(m, t, desk_.lock, work);
    if (entry == nullptr) return false;
    while (!desk_.take(m)) {
      const Either<M> first = await_either(m, *entry, *desk_.held);
      if (first.gave_up) return false;
      if (first.own) return true;
    }
    for (unsigned passes = 0; passes < passes_ && desk_.pass(m, work) != 0; ++passes) {
    }
    desk_.give(m);
    return true;
  }

 private:
  unsigned passes_;
  Desk<M> desk_;
};

}  // namespace muster::locks
