// SPDX-License-Identifier: BSD-3-Clause
// Remote Core Locking. A client writes its request to its own slot and waits until the server has
// cleared it; the server walks the slots and executes what it finds. The protected data stays in
// the server's cache, and the lock changes hands only when a server comes or goes: without one,
// each client takes the lock and executes its own request, so nothing is ever lost.
//
// This is the protocol, for one lock. delegation/station.hpp runs it for many, with threads, cores,
// sleep, and sections that block.
//
// Cost: two line transfers a section.
// Source: Lozi, David, Thomas, Lawall and Muller, USENIX ATC 2012 and ACM TOCS 33(4), 2016.
//
// Invariants:
// 1. The server has the lock while it serves.
// 2. A server that was told to stop executes what it finds, then gives up the lock: what comes
//    later sees the lock free.
#pragma once

#include "lock/desk.hpp"
#include "lock/reception.hpp"

namespace muster::locks {

template <Machine M>
class Rcl {
 public:
  static constexpr Traits traits{"rcl", Style::server, true, "two",
                                 "Lozi et al. 2012 and 2016, with numbered requests"};

  using Ticket = typename Rings<M>::Ticket;

  static Layout layout(const Shape& shape) {
    return {.global_cells = 1 + Reception<M>::cells,
            .slots = shape.clients,
            .cells_per_slot = cells_per_ring(1)};
  }
  Rcl(const Shape&, typename M::Cells cells)
      : reception_(cells, 1), desk_{&cells.global(0), &reception_.clients(), {1, cells}, 0} {}
  Ticket ticket(unsigned client) const { return {.client = client}; }

  template <class Work>
  bool execute(M& m, Ticket& t, Work& work) const {
    if (!t.entered) reception_.enter(m, t.client);
    t.entered = true;
    typename M::Cell* const entry = desk_.rings.post(m, t, desk_.lock, work);
    if (entry == nullptr) return false;
    for (;;) {
      const Either<M> first = await_either(m, *entry, *desk_.held);
      if (first.gave_up) return false;
      if (first.own) return true;
      if (!desk_.take(m)) continue;
      desk_.rings.serve(m, t.client, desk_.lock, work);  // unless a server was there just now
      desk_.give(m);
      return true;
    }
  }

  /// Serves until told to stop. False if it gave up.
  template <class Work>
  bool serve(M& m, Work& work) const {
    if (!desk_.take_when_free(m)) return false;
    do {
      const auto watched = reception_.watched(
          m, [&](unsigned client) -> auto& {
            return desk_.rings.at_last(m, client);  // a ring of one entry: always the same
          });
      const std::size_t news = watched.size() - 1;
      for (std::size_t at = 0;; ++at) {
        at = m.await_any(watched, at_least(1), relaxed, at);  // rings.serve acquires
        if (at == no_cell) return false;
        if (at == news) break;
        desk_.rings.serve(m, static_cast<unsigned>(at), desk_.lock, work);
      }
    } while (reception_.next(m));
    desk_.pass(m, work);
    desk_.give(m);
    return true;
  }

  /// By who starts a server; and by anybody, while it serves.
  void start(M& m) const { reception_.start(m); }
  void stop(M& m) const { reception_.stop(m); }

 private:
  Reception<M> reception_;
  Desk<M> desk_;
};

}  // namespace muster::locks
