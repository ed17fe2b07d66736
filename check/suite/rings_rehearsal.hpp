// SPDX-License-Identifier: BSD-3-Clause
// The rings that locks share, as programs to be explored. Mutants are compiled with a copy of this.
#pragma once

#include <memory>
#include <vector>

#include "check/suite/lock_rehearsal.hpp"
#include "lock/desk.hpp"

namespace muster::check {

/// Clients post for two locks in turn; a participant has each of them, and looks too early, too.
class RingsRehearsal {
  using M = Checked;

 public:
  RingsRehearsal(const LockScenario& scenario, Tuning& tuning, Memory& memory)
      : scenario_(scenario),
        tuning_(tuning),
        cells_(memory, 0, scenario.clients, depth + 1),
        rings_(depth, cells_),
        data_(memory, scenario.clients, scenario.clients * depth) {}

  static constexpr unsigned lock_count = 2;

  void run(Thread& self) {
    M m(self, tuning_);
    if (self.id() < scenario_.clients) return post(m);
    const Word lock = self.id() - scenario_.clients;
    for (Word number = 1; number <= scenario_.sections; ++number) {
      if (lock_of(number) != lock) continue;
      for (unsigned client = 0; client < scenario_.clients; ++client) {
        if (!serve(m, client, number)) return;
      }
    }
  }

 private:
  static constexpr unsigned depth = 2;

  /// A request is its number, in its slot; a client's sections of both locks change the same word.
  struct RingWork {
    Data& data;
    Word number = 0;

    void put(Checked& m, unsigned slot) { m.write(data.slots.at(slot), number); }
    void posted(Checked&) {}
    void run(Checked& m, unsigned slot) {
      const unsigned client = slot / depth;
      const Word next = m.read(data.executed[client]) + 1;
      m.thread().check(m.read(data.slots.at(slot)) == next, "executed twice, or not in its turn");
      m.write(data.executed[client], next);
    }
  };

  /// 0, 1, 1, 0, 0: each lock has requests that follow one of its own and one of the other's.
  static Word lock_of(Word number) { return number / 2 % lock_count; }

  bool serve(M& m, unsigned client, Word number) {
    RingWork work{data_};
    const Word lock = lock_of(number);
    if (rings_.serve(m, client, lock, work)) return true;
    // Not posted yet, or it is the other lock's turn.
    const Word before = locks::Served::least_after(number - 1);
    if (!m.await(cells_.of(client, depth), at_least(before), relaxed)) return false;
    const std::vector<Checked::Cell*> either{&rings_.at_last(m, client),
                                             &rings_.at_last(m, client, 1)};
    const Word request = locks::Rings<M>::request(number, lock);
    if (m.await_any(either, equals(request), relaxed) == no_cell) return false;
    m.thread().check(rings_.serve(m, client, lock, work), "a request is not executed");
    return true;
  }

  void post(M& m) {
    const unsigned client = m.thread().id();
    locks::Rings<M>::Ticket ticket{.client = client};
    Checked::Cell* entry = nullptr;
    for (Word number = 1; number <= scenario_.sections; ++number) {
      if (number == 3 && scenario_.sections % 2 != 0) {  // it may use both entries without a look
        if (!m.await(*entry, equals(0), acquire)) return;
        rings_.has_answer(ticket);
      }
      RingWork work{data_, number};
      entry = rings_.post(m, ticket, lock_of(number), work);
      if (entry == nullptr) return;
    }
    if (!m.await(*entry, equals(0), acquire)) return;
    m.thread().check(m.read(data_.executed[client]) == scenario_.sections, "not all were executed");
  }

  const LockScenario scenario_;
  Tuning& tuning_;
  Checked::Cells cells_;
  locks::Rings<M> rings_;
  Data data_;
};

/// A client posts for one lock; two participants take it in turn, and sections give it up in
/// between, as when they wait for a condition.
class YieldsRehearsal {
  using M = Checked;

 public:
  YieldsRehearsal(const LockScenario& scenario, Tuning& tuning, Memory& memory)
      : scenario_(scenario),
        tuning_(tuning),
        cells_(memory, 3, 1, depth + 1),
        desk_{&cells_.global(0), &cells_.global(1), {depth, cells_}, 0},
        posted_(cells_.global(2)),
        data_(memory, 1, depth) {}

  static constexpr unsigned executors = 2;

  void run(Thread& self) {
    M m(self, tuning_);
    if (self.id() == 0) return post(m);
    m.await(posted_, equals(1), acquire);
    YieldingWork work{*this};
    for (Word passes = 0; passes < scenario_.sections; ++passes) {
      take(m);
      desk_.rings.serve(m, 0, desk_.lock, work);
      desk_.give(m);
    }
  }

 private:
  static constexpr unsigned depth = 2;

  struct YieldingWork {
    YieldsRehearsal& all;
    Word number = 0;

    void put(M& m, unsigned slot) { m.write(all.data_.slots.at(slot), number); }
    void posted(M&) {}
    void run(M& m, unsigned slot) {
      all.check_turn(m, slot);
      all.desk_.give(m);
      all.take(m);
      all.check_turn(m, slot);
      m.write(all.data_.executed[0], m.read(all.data_.slots.at(slot)));
    }
  };

  void take(M& m) {
    while (!desk_.take(m)) m.await(*desk_.held, equals(0), relaxed);
  }
  void check_turn(M& m, unsigned slot) {
    m.thread().check(m.read(data_.slots.at(slot)) == m.read(data_.executed[0]) + 1,
                     "executed twice, or not in its turn");
  }
  void post(M& m) {
    locks::Rings<M>::Ticket ticket{.client = 0};
    Checked::Cell* entry = nullptr;
    for (Word number = 1; number <= scenario_.sections; ++number) {
      YieldingWork work{*this, number};
      entry = desk_.rings.post(m, ticket, desk_.lock, work);
    }
    m.store(posted_, 1, release);
    m.await(*entry, equals(0), acquire);
    m.thread().check(m.read(data_.executed[0]) == scenario_.sections, "not all were executed");
  }

  const LockScenario scenario_;
  Tuning& tuning_;
  Checked::Cells cells_;
  locks::Desk<M> desk_;
  Checked::Cell posted_;
  Data data_;
};

/// The program; the tuning must outlive it.
inline Program rehearse_rings(const LockScenario& scenario, Tuning& tuning) {
  if (scenario.variant == LockVariant::yields) {
    using Rehearsal = YieldsRehearsal;
    Program program{.name = scenario.name(), .threads = 1 + Rehearsal::executors};
    const auto rehearsal = std::make_shared<Rehearsal>(scenario, tuning, program.memory);
    program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
    return program;
  }
  Program program{.name = scenario.name(),
                  .threads = scenario.clients + RingsRehearsal::lock_count};
  const auto rehearsal = std::make_shared<RingsRehearsal>(scenario, tuning, program.memory);
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  return program;
}

}  // namespace muster::check
