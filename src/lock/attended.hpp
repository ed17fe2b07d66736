// SPDX-License-Identifier: BSD-3-Clause
// A lock and the server that comes to it and leaves again: what a station (delegation/station.hpp)
// is to many locks, for one, and without threads. Its server lives as a station's do (round.hpp),
// and learns of new clients and of its end by two words that its wait for requests includes.
// This is `auto` where it may have a server, and the base of `rcl`, in the model and the checker.
//
// Cost: as auto's; with a server two line transfers a section.
// Source: Lozi et al. 2016, section 3.2.
//
// Invariants:
// 1. The server has the lock while it executes, and gives it back after each round, sooner if
//    somebody waits for it: a client that finds it free may take it then.
// 2. What is pending when the server leaves is its client's: who sees no server takes the lock.
// 3. `clients` is more than the number of any client that has posted a request.
// 4. Whatever happens sets `news` afterwards; the server clears it before it looks.
// 5. Who is told to stop knows all requests that were posted before.
// 6. Who starts a server says so before it serves, and after the one before has left.
#pragma once

#include <utility>
#include <vector>

#include "lock/auto.hpp"
#include "lock/round.hpp"

namespace muster::locks {

template <LockMachine M>
class Attended {
 public:
  static constexpr Traits traits = Auto<M>::traits;

  using Ticket = typename Auto<M>::Ticket;

  static Layout layout(const Shape& shape) {
    return {.global_cells = 7, .slots = shape.clients, .cells_per_slot = cells_per_ring(1)};
  }
  /// `always`: as Auto's.
  Attended(const Shape&, typename M::Cells cells, bool always = false)
      : cells_(cells),
        desk_{&cells.global(0), &cells.global(1), {1, cells}, 0},
        auto_(desk_, {cells.global(5), cells.global(6), &back()}, &serving(), always) {}
  Ticket ticket(unsigned client) const { return auto_.ticket(client); }

  bool execute(M& m, Ticket& t, auto& work) const {
    enter(m, t);
    return auto_.execute(m, t, work);
  }
  bool is_served(M& m) const { return m.load(serving(), relaxed) != 0; }

  /// Until told to stop, or it gave up.
  template <class Work>
  void serve(M& m, Work& work) const {
    locks::serve(m, desk_.rings, Server<Work>(m, *this, work));
  }

  /// By who starts a server; and by anybody, while it serves. Clients execute what it leaves: it
  /// need not know of that.
  void start(M& m) const { m.store(serving(), 1, relaxed); }
  void stop(M& m) const {
    m.store(serving(), 0, relaxed);
    tell_news(m);
  }
  void tell(M& m, StandBack who) const { m.store(back(), who.word(), relaxed); }

 private:
  // Global cells: 0 is `held`, 1 `clients`, 5 and 6 are `wanted` and `dozing`.
  auto& news() const { return cells_.global(2); }
  auto& serving() const { return cells_.global(3); }
  auto& back() const { return cells_.global(4); }  ///< StandBack's

  void enter(M& m, Ticket& t) const {
    if (t.ring.entered) return;
    desk_.enter(m, t.ring);
    tell_news(m);
  }
  /// That there are some.
  void tell_news(M& m) const {
    m.exchange(news(), 1, release);  // pairs with goes_on's; no store: it would hide earlier ones
  }
  template <class Work>
  class Server : public Walk<M> {
    using Walk<M>::port_;

   public:
    Server(M& m, const Attended& lock, Work& work)
        : Walk<M>(m, *lock.desk_.clients), lock_(lock), work_(work) {
      watch();
    }

    bool goes_on(bool found) {
      if (!found) std::exchange(was_refused_, false) ? port_.linger(1) : wait();
      return !gave_up_ && lock_.is_served(port_);
    }
    bool take(Word) {
      was_refused_ = !lock_.auto_.take(port_);
      return !was_refused_;
    }
    const Auto<M>& lock(Word) const { return lock_.auto_; }
    bool execute(Word, Word client, const typename Rings<M>::Next& first) const {
      lock_.desk_.rings.execute(port_, client, first, work_);
      return true;
    }
    static bool has_given() { return true; }

   private:
    /// For news, or for a request that nobody else executes.
    void wait() {
      const std::size_t at = port_.await_any(CellSet<M>(watched_), at_least(1), relaxed);
      const std::size_t news = watched_.size() - 1;
      gave_up_ = at == no_cell;
      if (at == news) {
        port_.exchange(lock_.news(), 0, acquire);  // pairs with tell_news's; before it looks
        watch();
      } else if (!gave_up_) {
        gave_up_ = !await_executed(port_, lock_.desk_.rings.served(static_cast<unsigned>(at)));
      }
    }
    void watch() {
      watched_.clear();
      const Word clients = port_.load(*lock_.desk_.clients, relaxed);
      for (unsigned client = 0; client < clients; ++client) {
        // A ring of one entry: always the same.
        watched_.push_back(&lock_.desk_.rings.at_last(port_, client));
      }
      watched_.push_back(&lock_.news());
    }

    const Attended& lock_;
    Work& work_;
    std::vector<typename M::Cell*> watched_;  ///< the clients' requests, and the news
    bool was_refused_ = false;
    bool gave_up_ = false;
  };

  typename M::Cells cells_;
  Desk<M> desk_;
  Auto<M> auto_;
};

}  // namespace muster::locks
