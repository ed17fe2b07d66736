// SPDX-License-Identifier: BSD-3-Clause
// An `auto` lock and the server that comes to it and leaves again: what a station
// (delegation/station.hpp) is to many locks, for one. A server takes the lock for a round through
// the clients' requests. The model runs this; the station has serve_round() (round.hpp), which is
// checked.
//
// Cost: as auto's; with a server two line transfers a section.
// Source: Lozi et al. 2016, section 3.2.
//
// Invariants:
// 1. The server has the lock while it executes, and gives it back after each round: a client that
//    finds it free may take it then.
// 2. What is pending when the server leaves is its client's: who sees no server takes the lock.
#pragma once

#include "lock/auto.hpp"
#include "lock/reception.hpp"

namespace muster::locks {

template <Machine M>
class Attended {
 public:
  static constexpr Traits traits = Auto<M>::traits;

  using Ticket = typename Auto<M>::Ticket;

  static Layout layout(const Shape& shape) {
    return {.global_cells = 3 + Reception<M>::cells,
            .slots = shape.clients,
            .cells_per_slot = cells_per_ring(1)};
  }
  Attended(const Shape&, typename M::Cells cells)
      : reception_(cells, 3),
        desk_{&cells.global(0), &reception_.clients(), {1, cells}, 0},
        server_(&cells.global(2)),
        auto_(desk_, cells.global(1), server_) {}
  Ticket ticket(unsigned client) const { return auto_.ticket(client); }

  template <class Work>
  bool execute(M& m, Ticket& t, Work& work) const {
    if (!t.ring.entered) reception_.enter(m, t.ring.client);
    t.ring.entered = true;
    return auto_.execute(m, t, work);
  }

  /// Serves until told to stop. False if it gave up.
  template <class Work>
  bool serve(M& m, Work& work) const {
    m.store(*server_, 1, relaxed);  // a hint: clients look at the lock, too
    do {
      const auto watched = reception_.watched(
          m, [&](unsigned client) -> auto& {
            return desk_.rings.at_last(m, client);  // a ring of one entry: always the same
          });
      const std::size_t news = watched.size() - 1;
      bool has = false;
      for (std::size_t at = 0;; ++at) {
        const std::size_t from = at;
        at = m.await_any(watched, at_least(1), relaxed, at);  // rings.serve acquires
        if (at == no_cell) return false;
        if (has && (at < from || at == news)) {
          desk_.give(m);
          has = false;
        }
        if (at == news) break;
        if (!has && !desk_.take_when_free(m)) return false;
        has = true;
        desk_.rings.serve(m, static_cast<unsigned>(at), desk_.lock, work);
      }
    } while (reception_.next(m));
    reception_.reopen(m);
    m.store(*server_, 0, relaxed);
    return true;
  }

  /// By anybody, while a server serves.
  void stop(M& m) const { reception_.stop(m); }

 private:
  Reception<M> reception_;
  Desk<M> desk_;
  typename M::Cell* server_;
  Auto<M> auto_;
};

}  // namespace muster::locks
