// SPDX-License-Identifier: BSD-3-Clause
// The program around lock/bell.hpp and lock/round.hpp: clients post for two locks and do not wait;
// the server executes what it finds, and sleeps when it finds nothing, for ever if nobody wakes it.
// Three clients are known from the start, have rings of one entry, and the first one has posted by
// then: else there are too many executions. A combiner keeps a client's next request from the
// server's sight for a while.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "check/begin.hpp"
#include "check/checked.hpp"
#include "check/suite/lock_scenario.hpp"
#include "check/suite/lot.hpp"
#include "lock/auto.hpp"
#include "lock/bell.hpp"
#include "lock/round.hpp"

namespace muster::check {

/// The primitives of wait/sleep.hpp that the bell names. `wakes` counts the wake-ups: as under the
/// kernel's lock, who parks sees what was stored before those that came before.
struct BellLot : Lot {
  const Checked::Cell& wakes;

  void park(const Checked::Cell& cell, Word seen) {
    const Word turn = thread.load(wakes.location, Ordering::acquire);
    if (peek(cell) != seen) return;
    thread.await(wakes.location, Predicate(Woken{turn}), Ordering::acquire);
  }
  void unpark_all(const Checked::Cell&) { thread.fetch_add(wakes.location, 1, Ordering::acq_rel); }

 private:
  struct Woken {
    Word from;
    bool operator()(Word seen) const { return seen != from; }
  };
};

class BellRehearsal {
  using Lot = BellLot;

 public:
  BellRehearsal(const LockScenario& scenario, Tuning& tuning, Memory& memory)
      : clients_(scenario.clients),
        posts_(scenario.sections),
        has_combiner_(scenario.variant == LockVariant::combined),
        tuning_(tuning),
        is_crowd_(clients_ > 2),
        depth_(is_crowd_ ? 1 : 2),
        cells_(memory, has_combiner_ ? 4 : 1, clients_, depth_ + 1),
        rings_(depth_, cells_),
        all_{{memory.add(0, "sleepers")},
             {memory.add(0, "sleepers on the bell")},
             {memory.add(0, "bell")}},
        wakes_{memory.add(0, "wake-ups")} {
    if (is_crowd_) memory.set_initial(cells_.global(0).location, clients_);
    for (unsigned s = 0; s < clients_ * depth_; ++s) {
      slots_.push_back({memory.add(0, "slot " + std::to_string(s))});
    }
  }

  void run(Thread& self) {
    Checked m(self, tuning_);
    if (self.id() < clients_) {
      post(m, self.id());
    } else if (self.id() == clients_) {
      serve(m);
    } else {
      combine(m);
    }
  }

  /// Beside a combiner, and of three clients, the first one has posted before.
  void begin(Program& program) const {
    if (has_combiner_ || is_crowd_) check::begin(program, {{0}});
  }
  unsigned participants() const { return clients_ + (has_combiner_ ? 2 : 1); }

 private:
  /// A request is its number, from 1 on: two in a row for one lock, after one for another.
  static Word lock_of(Word number) { return number / 2; }
  struct Work {
    BellRehearsal& all;
    Word number = 0;
    Word executed = 0;
    Word last = 0;
    Word has = 0;  ///< the lock

    void put(Checked& m, unsigned slot) { m.write(all.slots_[slot], number); }
    void posted(Checked& m) { locks::Bell<Lot>::ring(all.lot(m), all.all_); }
    void run(Checked& m, unsigned slot) {
      const Word request = m.read(all.slots_[slot]);
      m.thread().check(request != 0, "executed before it was posted");
      m.thread().check(lock_of(request) == has, "executed without its lock");
      ++executed;
      last = request;
    }
  };

  struct Server : locks::Walk<Checked> {
    BellRehearsal& all;
    Work work{all};

    bool goes_on(bool found) {
      // The last one is the server's.
      if (all.has_combiner_ ? work.last == all.posts_ : work.executed == all.clients_ * all.posts_)
        return false;
      const auto is_wanted = [this] {
        return locks::any_pending(port_, all.rings_, all.cells_.global(0));
      };
      if (!found) locks::Bell<Lot>::sleep(all.lot(port_), all.all_, is_wanted);
      return found || !all.has_combiner_ || port_.await(all.held(), equals(0), relaxed);
    }
    bool take(Word lock) {
      if (all.is_others(lock) && !port_.take_held(all.held())) return false;
      work.has = lock;
      return true;
    }
    /// Nobody waits for it.
    struct Lock {
      const BellRehearsal& all;
      Word number;
      static bool is_wanted(Checked&) { return false; }
      static void ask(Checked&) {}
      void give_and_let_in(Checked& m) const {
        if (all.is_others(number)) m.give_held(all.held());
      }
    };
    Lock lock(Word number) const { return {all, number}; }
    bool execute(Word, Word client, const locks::Rings<Checked>::Next& next) {
      locks::execute_row(port_, all.rings_, client, next, work, [] { return true; });
      return true;
    }
    static bool has_given() { return true; }
  };

  /// A client that has the lock of the first request, and executes what it finds.
  void combine(Checked& m) {
    const locks::Auto<Checked> lock({&held(), &cells_.global(0), rings_, lock_of(1)},
                                    {cells_.global(2), cells_.global(3)}, nullptr);
    if (!lock.take(m)) return;
    Work work{*this, 0, 0, 0, lock_of(1)};
    locks::Habit habit;
    lock.give_after_visit(m, habit, work, [] { return true; });
  }

  void post(Checked& m, unsigned client) {
    locks::Rings<Checked>::Ticket ticket{client};
    if (!is_crowd_) locks::raise_clients(m, cells_.global(0), client);
    for (Word number = 1; number <= posts_; ++number) {
      Work work{*this, number};
      if (rings_.post(m, ticket, lock_of(number), work) == nullptr) return;
    }
  }

  void serve(Checked& m) { locks::serve(m, rings_, Server{{m, cells_.global(0)}, *this}); }

  Lot lot(Checked& m) const { return {{m.thread(), tuning_}, wakes_}; }
  /// Whether somebody else may have it.
  bool is_others(Word lock) const { return has_combiner_ && lock == lock_of(1); }
  Checked::Cell& held() const { return cells_.global(1); }

  const unsigned clients_;
  const unsigned posts_;
  const bool has_combiner_;
  Tuning& tuning_;
  const bool is_crowd_;
  const unsigned depth_;
  Checked::Cells cells_;
  locks::Rings<Checked> rings_;
  Announcements<Checked::Cell> all_;
  Checked::Cell wakes_;
  std::vector<Checked::Plain<Word>> slots_;
};

inline Program rehearse_bell(const LockScenario& scenario, Tuning& tuning) {
  Program program{.name = scenario.name()};
  const auto rehearsal = std::make_shared<BellRehearsal>(scenario, tuning, program.memory);
  program.threads = rehearsal->participants();
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  rehearsal->begin(program);
  return program;
}

}  // namespace muster::check
