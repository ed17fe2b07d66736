// SPDX-License-Identifier: BSD-3-Clause
// Flat combining. A client publishes its request in its own slot and tries the lock: who gets it
// executes what everybody has published, pass after pass while there is something, and frees it;
// the others wait for their slot to be cleared, or for the lock. A client that found nobody's
// request but its own when it last had the lock tries it first, and publishes only if it is taken.
//
// Cost: two line transfers a section executed by another; none while one client is alone.
// Source: Hendler, Incze, Shavit and Tzafrir, SPAA 2010. Publication records are slots here, and
// stay; those whose thread has ended are not looked at. That who is alone publishes nothing is
// ours.
//
// Invariants:
// 1. Requests are executed by whoever has the lock (rings.hpp).
// 2. Who has had the lock has had its own request executed.
#pragma once

#include "lock/desk.hpp"

namespace muster::locks {

template <Machine M>
class FlatCombining : public Combining<FlatCombining<M>> {
 public:
  static constexpr Traits traits{"flat-combining", Style::combining, false, "two",
                                 "Hendler, Incze, Shavit and Tzafrir 2010"};

  struct Ticket {
    typename Rings<M>::Ticket ring;
    bool alone = false;  ///< when it last had the lock, or tried to
  };

  static Layout layout(const Shape& shape) {
    return {
        .global_cells = 2, .slots = shape.clients, .cells_per_slot = Rings<M>::cells_per_client(1)};
  }
  FlatCombining(const Shape& shape, typename M::Cells cells)
      : passes_(shape.limit), desk_{&cells.global(0), &cells.global(1), {1, cells}, 0} {}
  Ticket ticket(unsigned client) const { return {.ring = {.client = client}}; }

  bool take(M& m, Ticket& t) const { return t.alone && desk_.take(m); }
  template <class Work>
  bool delegate(M& m, Ticket& t, Work& work) const {
    t.alone = false;
    desk_.enter(m, t.ring);
    typename M::Cell* const entry = desk_.rings.post(m, t.ring, desk_.lock, work);
    if (entry == nullptr) return false;
    while (!desk_.take(m)) {
      const Either<M> first = await_either(m, *entry, *desk_.held);
      if (first.gave_up) return false;
      if (first.own) return true;
    }
    desk_.rings.serve(m, t.ring.client, desk_.lock, work);  // unless somebody just has
    return serve(m, t, work);
  }
  bool give(M& m, Ticket& t) const {
    if (desk_.has_pending(m, t.ring.client)) return false;
    desk_.give(m);
    return true;
  }
  template <class Work>
  bool serve(M& m, Ticket& t, Work& work) const {
    t.alone = true;
    for (unsigned passes = 0; passes < passes_; ++passes) {
      if (desk_.pass(m, work, t.ring.client) == 0) break;
      t.alone = false;
    }
    desk_.give(m);
    return true;
  }

 private:
  unsigned passes_;
  Desk<M> desk_;
};

}  // namespace muster::locks
