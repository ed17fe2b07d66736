// SPDX-License-Identifier: BSD-3-Clause
// A lock and the server that comes to it and leaves again: what a station (delegation/station.hpp)
// is to many locks, for one, and without threads. Its server lives as a station's do (round.hpp).
// This is `auto` where it may have a server, and the base of `rcl`, in the model and the checker.
//
// Cost: as auto's; with a server two line transfers a section.
// Source: Lozi et al. 2016, section 3.2.
//
// Invariants:
// 1. The server has the lock while it executes, and gives it back after each round, sooner if
//    somebody waits for it: a client that finds it free may take it then.
// 2. What is pending when the server leaves is its client's: who sees no server takes the lock.
#pragma once

#include <utility>
#include <vector>

#include "lock/auto.hpp"
#include "lock/reception.hpp"
#include "lock/round.hpp"

namespace muster::locks {

template <LockMachine M>
class Attended {
 public:
  static constexpr Traits traits = Auto<M>::traits;

  using Ticket = typename Auto<M>::Ticket;

  static Layout layout(const Shape& shape) {
    return {.global_cells = 3 + Reception<M>::cells,
            .slots = shape.clients,
            .cells_per_slot = cells_per_ring(1)};
  }
  /// `always`: as Auto's.
  Attended(const Shape&, typename M::Cells cells, bool always = false)
      : reception_(cells, 1),
        desk_{&cells.global(0), &reception_.clients(), {1, cells}, 0},
        auto_(desk_,
              {cells.global(1 + Reception<M>::cells), cells.global(2 + Reception<M>::cells),
               &reception_.back()},
              &reception_.serving(), always) {}
  Ticket ticket(unsigned client) const { return auto_.ticket(client); }

  template <class Work>
  bool execute(M& m, Ticket& t, Work& work) const {
    enter(m, t);
    return auto_.execute(m, t, work);
  }
  bool is_served(M& m) const { return m.load(reception_.serving(), relaxed) != 0; }

  /// Until told to stop, or it gave up.
  template <class Work>
  void serve(M& m, Work& work) const {
    locks::serve(m, desk_.rings, Server<Work>(m, *this, work));
  }

  /// By who starts a server; and by anybody, while it serves. Clients execute what it leaves: it
  /// need not know of that.
  void start(M& m) const { reception_.start(m); }
  void stop(M& m) const {
    m.store(reception_.serving(), 0, relaxed);
    reception_.tell(m);
  }
  void tell(M& m, StandBack who) const { m.store(reception_.back(), who.word(), relaxed); }

 private:
  void enter(M& m, Ticket& t) const {
    if (!t.ring.entered) reception_.enter(m, t.ring.client);
    t.ring.entered = true;
  }
  template <class Work>
  class Server {
   public:
    Server(M& m, const Attended& lock, Work& work) : m_(m), lock_(lock), work_(work) { watch(); }

    bool goes_on(bool found) {
      if (!found) std::exchange(was_refused_, false) ? m_.linger(1) : wait();
      if (at_ == no_cell) return false;
      if (at_ == news_) {
        lock_.reception_.hear(m_);
        watch();
      }
      return lock_.is_served(m_);
    }
    /// One operation, so that misses overlap. It ends at `serving`, or at the news that this is 0.
    Word next(Word from) {
      at_ = m_.await_any(watched_, at_least(1), relaxed, from);
      return from <= at_ && at_ < news_ ? static_cast<Word>(at_) : no_client;
    }
    bool take(Word) {
      was_refused_ = !lock_.auto_.take(m_);
      return !was_refused_;
    }
    const Auto<M>& lock(Word) const { return lock_.auto_; }
    bool execute(Word, Word client, const typename Rings<M>::Next& first) const {
      lock_.desk_.rings.execute(m_, client, first, work_);
      return true;
    }
    static bool has_given() { return true; }

   private:
    /// For news, or for a request that nobody else executes.
    void wait() {
      const CellSet<M> all(watched_);
      at_ = m_.await_any(all.first(news_ + 1), at_least(1), relaxed);
      if (at_ >= news_) return;
      auto& served = lock_.desk_.rings.served(static_cast<unsigned>(at_));
      if (!await_executed(m_, served)) at_ = no_cell;
    }
    void watch() {
      watched_ = lock_.reception_.watched(
          m_, [&](unsigned client) -> auto& {
            return lock_.desk_.rings.at_last(m_, client);  // a ring of one entry: always the same
          });
      news_ = watched_.size() - 1;
      watched_.push_back(&lock_.reception_.serving());
      at_ = news_ + 1;
    }

    M& m_;
    const Attended& lock_;
    Work& work_;
    std::vector<typename M::Cell*> watched_;  ///< the clients' requests, the news, and `serving`
    std::size_t news_ = 0;
    std::size_t at_ = 0;  ///< what was found last
    bool was_refused_ = false;
  };

  Reception<M> reception_;
  Desk<M> desk_;
  Auto<M> auto_;
};

}  // namespace muster::locks
