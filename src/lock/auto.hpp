// SPDX-License-Identifier: BSD-3-Clause
// The lock that decides by itself. A client that finds it free executes its section at once, one
// after the other, for as long as nobody else wants the lock; one that finds it taken delegates: it
// posts its requests, without touching the lock's line, and says so there only when it has waited
// for some microseconds. Then whoever has the lock executes what is posted, and after many such
// visits lets another one have it. So lines travel a few times in some microseconds, and not for
// each section. Whether another client or a server thread executes a request is the same protocol:
// a server is a combiner that always comes.
//
// Cost: an exchange and a store while uncontended; else some line transfers for each request that
// is executed by another.
// Source: the slots of Lozi et al. 2016 under the lock of Hendler et al. 2010; the decision is
// ours.
//
// Invariants:
// 1. Whoever executes a section has the lock: changing over needs nobody's consent.
// 2. Hysteresis is each client's own: it delegates from the first failure to take the lock, or from
//    meeting others while a server runs, until nobody executes its request while the lock is free,
//    or until `trial` requests have passed.
// 3. `wanted` is a hint: if it is lost, whoever waits repeats it, or finds the lock free.
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
    unsigned visits = 0;  ///< of others' requests since it last let another one have the lock
    Count inlined;        ///< executed by the client at once
    Count delegated;      ///< executed by somebody else
    Count combined;       ///< of others, executed by this client
    Count switches;       ///< from executing to delegating or back
  };
  using Ring = typename Rings<M>::Ticket;
  struct Ticket {
    Ring ring;
    Habit habit{};
  };

  static Layout layout(const Shape& shape) {
    return {
        .global_cells = 3, .slots = shape.clients, .cells_per_slot = Rings<M>::cells_per_client(1)};
  }
  Auto(const Shape&, typename M::Cells cells)
      : desk_{&cells.global(0), &cells.global(1), {1, cells}, 0}, wanted_(&cells.global(2)) {}
  /// A lock among others that share rings. `wanted`: best on the line of desk.held. `server`:
  /// nonzero while somebody serves the rings.
  Auto(const Desk<M>& desk, typename M::Cell* wanted, typename M::Cell* server)
      : desk_(desk), wanted_(wanted), server_(server) {}
  Ticket ticket(unsigned client) const { return {.ring = {.client = client}}; }

  template <class Work>
  bool execute(M& m, Ticket& t, Work& work) const {
    return execute(m, t.ring, t.habit, work, [] { return true; });
  }

  /// `combines()`: it also executes requests of others; not where sections may wait for what their
  /// executor would do next.
  template <class Work, class Combines>
  bool execute(M& m, Ring& ring, Habit& h, Work& work, Combines combines) const {
    if (!h.delegates || h.until_trial-- == 0) {
      if (desk_.take(m)) {
        set_delegates(h, false);
        execute_and_give(m, h, work, combines);
        return true;
      }
      set_delegates(h, true);
      h.until_trial = trial;
    }
    return delegate(m, ring, h, work, combines);
  }

  /// Executes the section at once; false if the lock is taken.
  template <class Work, class Combines>
  bool execute_alone(M& m, Habit& h, Work& work, Combines combines) const {
    if (!desk_.take(m)) [[unlikely]]
      return false;
    execute_and_give(m, h, work, combines);
    return true;
  }

  /// Posts the request and sees to it that it is executed.
  template <class Work, class Combines>
  bool delegate(M& m, Ring& ring, Habit& h, Work& work, Combines combines) const {
    desk_.enter(m, ring);
    typename M::Cell* const entry = desk_.rings.post(m, ring, desk_.lock, work);
    return entry != nullptr && finish(m, ring, h, *entry, work, combines);
  }

  /// Waits until a posted request is executed; executes it if there is nobody else.
  template <class Work, class Combines>
  bool finish(M& m, Ring& ring, Habit& h, typename M::Cell& entry, Work& work,
              Combines combines) const {
    for (Backoff backoff;; backoff.wait(m)) {
      const Either<M> first = await_served(m, entry, is_served(m) ? *server_ : *desk_.held);
      if (first.gave_up) return false;
      if (first.own) {
        ++h.delegated;
        return true;
      }
      if (!desk_.take(m)) continue;
      const bool executed = desk_.rings.serve(m, ring.client, desk_.lock, work);
      set_delegates(h, false);
      visit(m, h, work, combines);
      desk_.give(m);
      if (!executed) continue;
      ++h.inlined;
      if (m.load(entry, relaxed) == 0) return true;
    }
  }

 private:
  static constexpr unsigned trial = 1024;
  static constexpr unsigned visits_max = 64;
  static constexpr unsigned lingering = 64;

  static void set_delegates(Habit& h, bool delegates) {
    if (h.delegates == delegates) return;
    h.delegates = delegates;
    ++h.switches;
  }

  template <class Work, class Combines>
  void execute_and_give(M& m, Habit& h, Work& work, Combines combines) const {
    work.run_own(m);
    ++h.inlined;
    if (m.load(*wanted_, relaxed) == 0) [[likely]]
      return desk_.give(m);
    m.store(*wanted_, 0, relaxed);
    if constexpr (requires { work.others(); }) {
      auto others = work.others();  // the client's own section is in registers, and stays there
      visit(m, h, others, combines);
    } else {
      visit(m, h, work, combines);
    }
    desk_.give(m);
    if (h.visits >= visits_max) let_another(m, h);
  }

  bool is_served(M& m) const { return server_ != nullptr && m.load(*server_, relaxed) != 0; }

  /// As await_either(); says that it waits, on hardware after some time.
  Either<M> await_served(M& m, typename M::Cell& entry, typename M::Cell& other) const {
    if constexpr (requires { m.await_either(entry, other, acquire, *wanted_); }) {
      const int which = m.await_either(entry, other, acquire, *wanted_);
      return {which == 0, which < 0};
    } else {
      m.store(*wanted_, 1, relaxed);
      return await_either(m, entry, other);
    }
  }

  /// Executes what others have posted. If they have, and a server runs, that is the server's from
  /// now on.
  template <class Work, class Combines>
  [[gnu::noinline]] void visit(M& m, Habit& h, Work& work, Combines combines) const {
    if (!combines()) {
      h.visits = visits_max;  // they have to come in themselves
      return;
    }
    const unsigned executed = desk_.pass(m, work);
    if (executed == 0) return;
    h.combined += executed;
    ++h.visits;
    if (!is_served(m)) return;
    set_delegates(h, true);
    h.until_trial = trial;
  }

  /// For a moment, in which who waits finds the lock free.
  [[gnu::noinline]] static void let_another(M& m, Habit& h) {
    h.visits = 0;
    if constexpr (requires { m.linger(1U); }) m.linger(lingering);
  }

  Desk<M> desk_;
  typename M::Cell* wanted_;
  typename M::Cell* server_ = nullptr;
};

}  // namespace muster::locks
