// SPDX-License-Identifier: BSD-3-Clause
// The programs around lock/nested.hpp: a server's thread executes a section inside another one, and
// who that waits for waits for the server. Only a spare, who starts when the thread steps aside,
// can go on then. Mutants are compiled with a copy of this.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "check/checked.hpp"
#include "check/suite/lock_rehearsal.hpp"
#include "lock/auto.hpp"
#include "lock/nested.hpp"

namespace muster::check {

class NestingRehearsal {
  using M = Checked;
  using Lock = locks::Auto<M>;

 public:
  static constexpr unsigned threads = 3;

  NestingRehearsal(const LockScenario& scenario, Tuning& tuning, Memory& memory)
      : across_(scenario.variant == LockVariant::across),
        tuning_(tuning),
        stations_{station(memory, "first"), station(memory, "second")},
        data_(memory, clients, clients, lock_count),
        duty_{memory.add(0, "who serves")} {}

  void run(Thread& self) {
    M m(self, tuning_);
    switch (self.id()) {
      case 0:
        return serve_after_nested(m);
      case 1:
        m.await(duty_, at_least(1), relaxed);
        if (m.load(duty_, relaxed) == spare) serve(m, asked);
        return;
      default:
        return across_ ? answer(m) : own(m);
    }
  }

 private:
  /// `nested`: the first station's thread executes its section inside another one. `asked`: who
  /// that waits for waits for an answer from there. Its request has the lock's number for a client.
  enum : Word { nested, asked, lock_count };
  enum : unsigned { owner = lock_count, clients };
  enum : Word { itself = 1, spare };

  static Checked::Cells station(Memory& memory, const std::string& name) {
    Checked::Cells cells(memory, 3 + 2 * lock_count, clients, locks::cells_per_ring(1),
                         name + " station's ");
    memory.set_initial(cells.global(1).location, 1);
    return cells;
  }
  const Checked::Cells& station_of(Word lock) const {
    return stations_[across_ && lock == nested ? 1 : 0];
  }
  locks::Desk<M> desk(Word lock) const {
    const Checked::Cells& cells = station_of(lock);
    return {&cells.global(3 + lock), &cells.global(0), {1, cells}, lock};
  }
  Lock make(Word lock) const {
    const Checked::Cells& cells = station_of(lock);
    return {desk(lock), {cells.global(3 + lock_count + lock), cells.global(2)}, &cells.global(1)};
  }

  /// The first station's thread: serves on, unless it has stepped aside.
  void serve_after_nested(M& m) {
    bool steps_aside = false;
    execute_nested(m, nested, [&](auto wait) {
      steps_aside = true;
      m.store(duty_, spare, relaxed);
      wait();
    });
    if (steps_aside) return;
    m.store(duty_, itself, relaxed);
    serve(m, asked);
  }
  /// The second station's: needs no spare, as the first one has one.
  void answer(M& m) {
    execute_nested(m, asked, [](auto wait) { wait(); });
    serve(m, nested);
  }
  /// A client that has the lock, and waits inside.
  void own(M& m) {
    const Lock lock = make(nested);
    if (!lock.take(m)) lock.take_in_turn(m);
    CheckedWork work(data_, owner, nested);
    work.pause([&] {
      typename Lock::Ticket ticket = make(asked).ticket(asked);
      execute(m, asked, [&](auto& request) {
        make(asked).delegate(m, ticket.ring, ticket.habit, request, [] { return false; });
      });
    });
    m.write(data_.argument[owner], 1U);
    work.run_own(m);
    lock.give(m);
  }

  void execute_nested(M& m, Word lock, auto aside) {
    typename Lock::Ticket ticket = make(lock).ticket(lock);
    const auto is_soon = [&](const Checked::Cell& cell) { return m.load(cell, acquire) == 0; };
    execute(m, lock, [&](auto& work) {
      locks::execute_nested(m, make(lock), ticket.ring, ticket.habit, work, across_, is_soon,
                            aside);
    });
  }
  void execute(M& m, Word lock, auto body) {
    CheckedWork work(data_, lock, lock);
    m.write(data_.argument[lock], 1U);
    body(work);
    m.thread().check(m.read(data_.result[lock]) == 10 + lock, "the section was not executed");
  }

  /// The one request for the lock; who has posted it has come before.
  void serve(M& m, Word lock) {
    const locks::Desk<M> first = desk(lock);
    const std::vector<Lock> all{make(nested), make(asked)};
    m.await(station_of(lock).of(lock, 0), at_least(1), acquire);
    locks::serve(
        m, first.rings,
        PassingServer<M>{{m, *first.clients}, first.rings, all, data_, clients, nullptr, 1});
  }

  const bool across_;
  Tuning& tuning_;
  std::array<Checked::Cells, 2> stations_;
  Data data_;
  Checked::Cell duty_;
};

inline Program rehearse_nesting(const LockScenario& scenario, Tuning& tuning) {
  Program program{.name = scenario.name(), .threads = NestingRehearsal::threads};
  const auto rehearsal = std::make_shared<NestingRehearsal>(scenario, tuning, program.memory);
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  return program;
}

}  // namespace muster::check
