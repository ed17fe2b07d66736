// SPDX-License-Identifier: BSD-3-Clause
// The lock that decides by itself. A client that finds it free executes its sections at once, for
// as long as nobody else wants it; one that finds it taken posts its requests, and says so on the
// lock's line after some microseconds. Then who has the lock executes what is posted while more
// comes, and at times lets another have it. A server is a combiner that always comes.
//
// Cost: a compare-and-swap and a store while uncontended; else some line transfers a request.
// Source: the slots of Lozi et al. 2016 under the lock of Hendler et al. 2010; the decision: ours.
//
// Invariants:
// 1. Whoever executes a section has the lock: changing over needs nobody's consent.
// 2. Which way a client goes is its own matter (Habit::set_delegates()).
#pragma once

#include "lock/habit.hpp"

namespace muster::locks {

template <LockMachine M>
class Auto : public WantedLock<M> {
  using Lock = WantedLock<M>;
  using Lock::desk_, Lock::wanted_;

 public:
  using Lock::give, Lock::take;
  static constexpr Traits traits{"auto", Style::adaptive, false,
                                 "none while one client is alone, else two",
                                 "Lozi et al. 2016 and Hendler et al. 2010, chosen by contention"};

  using Ring = typename Rings<M>::Ticket;
  struct Ticket {
    Ring ring;
    Habit habit{};
  };

  static Layout layout(const Shape& shape) {
    return {.global_cells = 4, .slots = shape.clients, .cells_per_slot = cells_per_ring(1)};
  }
  Auto(const Shape&, typename M::Cells cells)
      : Auto({&cells.global(0), &cells.global(1), {1, cells}, 0},
             {cells.global(2), cells.global(3)}, nullptr) {}
  /// One of many. `server`: not 0 while one serves them; `always`: clients then post, as rcl's.
  Auto(const Desk<M>& desk, const Wanted<M>& wanted, typename M::Cell* server, bool always = false)
      : Lock(desk, wanted), server_(server), always_(always) {}
  Ticket ticket(unsigned client) const { return {.ring = {.client = client}}; }
  bool execute(M& m, Ticket& t, auto& work) const {
    return execute(m, t.ring, t.habit, work, [] { return true; });
  }

  /// `combines()`: it also executes requests of others; not where these may wait for its own next.
  bool execute(M& m, Ring& ring, Habit& h, auto& work, auto combines) const {
    const bool posts = always_ && is_served(m);
    if (!posts && (!h.delegates || h.until_trial-- == 0)) {
      if (take(m)) {
        const bool tries = h.delegates && is_served(m);  // then it looks whether others do
        h.set_delegates(false);
        work.run_own(m);
        const auto visit = [&] { give_after_visit(m, h, work, combines), ++h.inlined; };
        tries ? visit() : give(m, h, visit);
        return true;
      }
      h.set_delegates(combines() || is_served(m));  // else nobody would execute its requests
      h.until_trial = Habit::trial;
    }
    return delegate(m, ring, h, work, combines);
  }

  /// After a section that is executed at once; if somebody waits, by `visit()`: give_after_visit(),
  /// and the count.
  [[gnu::always_inline]] void give(M& m, Habit& h, auto visit) const {
    if (!this->is_wanted(m)) [[likely]] {
      desk_.give(m);
      if (!m.is_dozing(wanted_.dozing) || !take(m)) [[likely]] {
        ++h.inlined;
        return;
      }
    }
    visit();
  }
  typename M::Cell* post(M& m, Ring& ring, auto& work) const {  ///< its entry; null: it gave up
    desk_.enter(m, ring);
    return desk_.rings.post(m, ring, desk_.lock, work);
  }
  bool delegate(M& m, Ring& ring, Habit& h, auto& work, auto combines) const {
    typename M::Cell* const entry = post(m, ring, work);
    return entry != nullptr && finish(m, ring, h, *entry, work, combines);
  }

  /// Waits until a posted request is executed; executes it if there is nobody else.
  bool finish(M& m, Ring& ring, Habit& h, auto& entry, auto& work, auto combines) const {
    StandingBack<M> standing_back(wanted_.back, h.had_ns);
    for (Backoff lost;; lost.wait(m)) {
      // A server comes without being told; nor does it take back that somebody waits.
      const int first =
          is_served(m) ? m.await_either(entry, *server_, acquire, Awaited::anyone)
                       : m.await_either(entry, *desk_.held, acquire, wanted_.wanted, wanted_.dozing,
                                        {h.is_used_to(), combines(), lost.waits(),
                                         &desk_.rings.served(ring.client),
                                         Served::least_after(ring.posted - 1)});
      if (first < 0) return false;
      if (first == 0) {
        desk_.rings.has_answer(ring);
        ++h.delegated;
        if (!combines()) m.wake_one(wanted_.dozing);
        return true;
      }
      if (standing_back.did(m) || !take(m)) continue;
      if (!combines()) this->pass_on(m);
      const bool executed = desk_.rings.serve(m, ring.client, desk_.lock, work);
      h.set_delegates(false);
      give_after_visit(m, h, work, combines);
      if (!executed) continue;
      ++h.inlined;
      if (!combines()) ++h.waited, work.posted(m);  // a server has not seen its next request
      // stronger: for who has several requests and reads what the last one left
      if (m.load(entry, acquire) == 0) return true;  // pairs with another executor's store
    }
  }

  /// Executes what others have posted; if they have and a server runs, that is its from now on.
  [[gnu::noinline]] void give_after_visit(M& m, Habit& h, auto& work, auto combines) const {
    const auto served = [&] { return is_served(m); };
    unsigned executed = 0, visits = 0;  // of these two: while others sleep they have requests
    do {
      const bool nobody_waits = m.is_by_section(wanted_.wanted);
      m.clear_wanted(wanted_.wanted, wanted_.dozing);
      const bool dozed = m.take_note(wanted_.dozing);
      executed = desk_.combine(m, work, combines, served, h.pace);
      if (dozed && !combines()) m.set_dozing(wanted_.dozing);
      desk_.give(m);
      if (executed != 0) work.posted(m);  // a server has not seen these clients' next requests
      h.combined += executed;
      if (executed != 0 && served()) h.set_delegates(true);
      const bool goes_on = nobody_waits || (combines() && h.goes_on_after_visit(m) &&
                                            !StandingBack<M>(wanted_.back).is_asked(m));
      if (goes_on && !m.is_slept_on(wanted_.dozing)) continue;
      this->let_one_in(m);
    } while (++visits < 2 && executed != 0 && m.is_dozing(wanted_.dozing) && take(m));
    this->look_back(m);
  }

 private:
  bool is_served(M& m) const { return server_ != nullptr && m.load(*server_, relaxed) != 0; }

  typename M::Cell* server_ = nullptr;
  bool always_ = false;
};

}  // namespace muster::locks
