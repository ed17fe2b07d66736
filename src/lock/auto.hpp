// SPDX-License-Identifier: BSD-3-Clause
// The lock that decides by itself. A client that finds it free executes its section at once, and
// then what others have posted; one that finds it taken delegates: it posts its requests, without
// touching the lock's line, for as long as somebody executes them soon. Who executes them, another
// client or a server thread, is the same protocol: a server is a combiner that always comes.
//
// Cost: an exchange and a store while uncontended; else two line transfers a section.
// Source: the slots of Lozi et al. 2016 under the lock of Hendler et al. 2010; the decision is
// ours.
//
// Invariants:
// 1. Whoever executes a section has the lock: changing over needs nobody's consent.
// 2. Hysteresis is each client's own: it delegates from the first failure to take the lock until
//    nobody executes its request while the lock is free, or until `trial` requests have passed.
#pragma once

#include "lock/rings.hpp"

namespace muster::locks {

template <Machine M>
class Auto {
 public:
  static constexpr Traits traits{"auto", Style::adaptive, false,
                                 "none while one client is alone, else two",
                                 "Lozi et al. 2016 and Hendler et al. 2010, chosen by contention"};

  /// What a client has learnt about one lock, and what became of its sections.
  struct Habit {
    bool delegates = false;
    unsigned until_trial = 0;
    unsigned until_pass = 0;  ///< own sections until it looks for others' requests again
    unsigned gap = 1;         ///< between two looks: longer while there are none
    Count inlined;            ///< executed by the client at once
    Count delegated;          ///< executed by somebody else
    Count combined;           ///< of others, executed by this client
    Count switches;           ///< from executing to delegating or back
  };
  using Ring = typename Rings<M>::Ticket;
  struct Ticket {
    Ring ring;
    Habit habit{};
  };

  static Layout layout(const Shape& shape) {
    return {
        .global_cells = 2, .slots = shape.clients, .cells_per_slot = Rings<M>::cells_per_client(1)};
  }
  Auto(const Shape&, typename M::Cells cells)
      : desk_{&cells.global(0), &cells.global(1), {1, cells}, 0} {}
  /// A lock among others that share rings. `server`: nonzero while somebody serves the rings.
  Auto(const Desk<M>& desk, typename M::Cell* server) : desk_(desk), server_(server) {}
  Ticket ticket(unsigned client) const { return {.ring = {.client = client}}; }

  template <class Work>
  bool execute(M& m, Ticket& t, Work& work) const {
    return execute(m, t.ring, t.habit, work, true);
  }

  /// `combines`: also executes requests of others; not where sections may wait for what their
  /// executor would do next.
  template <class Work>
  bool execute(M& m, Ring& ring, Habit& h, Work& work, bool combines) const {
    if (!h.delegates || h.until_trial-- == 0) {
      if (desk_.take(m)) [[likely]] {
        work.run_own(m);
        if (combines && h.until_pass-- == 0) combine(m, h, work);
        desk_.give(m);
        ++h.inlined;
        set_delegates(h, false);
        return true;
      }
      set_delegates(h, true);
      h.until_trial = trial;
    }
    return delegate(m, ring, h, work, combines);
  }

  /// Posts the request and sees to it that it is executed.
  template <class Work>
  bool delegate(M& m, Ring& ring, Habit& h, Work& work, bool combines) const {
    desk_.enter(m, ring);
    typename M::Cell* const entry = desk_.rings.post(m, ring, desk_.lock, work);
    return entry != nullptr && finish(m, ring, h, *entry, work, combines);
  }

  /// Waits until a posted request is executed; executes it if there is nobody else.
  template <class Work>
  bool finish(M& m, Ring& ring, Habit& h, typename M::Cell& entry, Work& work,
              bool combines) const {
    for (Backoff backoff;; backoff.wait(m)) {
      const bool served = server_ != nullptr && m.load(*server_, relaxed) != 0;
      const Either<M> first = await_either(m, entry, served ? *server_ : *desk_.held);
      if (first.gave_up) return false;
      if (first.own) {
        ++h.delegated;
        return true;
      }
      if (!desk_.take(m)) continue;
      const bool executed = desk_.rings.serve(m, ring.client, desk_.lock, work);
      if (combines) combine(m, h, work);
      desk_.give(m);
      set_delegates(h, false);
      if (!executed) continue;
      ++h.inlined;
      if (m.load(entry, relaxed) == 0) return true;
    }
  }

 private:
  static constexpr unsigned trial = 1024;
  static constexpr unsigned gap_max = 8;

  static void set_delegates(Habit& h, bool delegates) {
    if (h.delegates == delegates) return;
    h.delegates = delegates;
    ++h.switches;
  }

  template <class Work>
  void combine(M& m, Habit& h, Work& work) const {
    const unsigned executed = desk_.pass(m, work);
    h.gap = executed != 0 ? 1 : h.gap < gap_max ? 2 * h.gap : gap_max;
    h.until_pass = h.gap - 1;
    h.combined += executed;
  }

  Desk<M> desk_;
  typename M::Cell* server_ = nullptr;
};

}  // namespace muster::locks
