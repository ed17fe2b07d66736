// SPDX-License-Identifier: BSD-3-Clause
// The program around lock/robust.hpp: clients that sleep, one that may die, and one that writes
// nonsense. A section changes two words, one after the other: who finds them different has entered
// where somebody died.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "check/checked.hpp"
#include "check/graph.hpp"
#include "check/suite/futex_queue.hpp"
#include "check/suite/lock_scenario.hpp"
#include "lock/robust.hpp"

namespace muster::check {

/// Thrown by a client's port: it has died.
struct Dead {};

struct RobustRoom {
  Checked::Cells cells;
  FutexQueue queue;
  Checked::Cell trouble;  ///< 1: the first client has died, or nonsense was written
  unsigned clients;
  bool mortal;
  Word steps;  ///< of the first client, at most
};

/// The checked machine with its sleeps. They are over from time to time: what that is good for is
/// seen where there has been trouble. Without it they last until the wake-up, so that one that is
/// lost shows as a hang.
class RobustPort : public Checked {
 public:
  RobustPort(Thread& thread, Tuning& tuning, const RobustRoom& room)
      : Checked(thread, tuning), room_(room) {
    if (room.mortal && thread.id() == 0) steps_left_ = thread.choose(room.steps + 1);
  }

  /// A step of the client's life.
  void live() {
    if (steps_left_-- == 0) throw Dead{};
  }
  template <Order O>
  Word load(const Cell& cell, OrderTag<O> order, Site site = Site::here()) {
    live();
    return Checked::load(cell, order, site);
  }
  template <Order O>
  void store(Cell& cell, Word word, OrderTag<O> order, Site site = Site::here()) {
    live();
    Checked::store(cell, word, order, site);
  }
  template <Order O>
  bool compare_exchange(Cell& cell, Word& expected, Word desired, OrderTag<O> order,
                        Site site = Site::here()) {
    live();
    return Checked::compare_exchange(cell, expected, desired, order, site);
  }

  /// A death that is seen comes before; so does all that the dead have seen.
  bool is_gone(Word holder, Site site = Site::here()) {
    if (!is_long_) return false;
    if (holder == 0 || holder > room_.clients) return true;
    return room_.mortal && holder == 1 &&
           thread().load(room_.trouble.location, Ordering::acquire, site) != 0;
  }
  /// is_gone() looks at once.
  void look() { is_long_ = true; }

  template <class Pred>
  bool poll(Cell& cell, Pred pred, Site site = Site::here()) {
    return pred(load(cell, relaxed, site));
  }
  bool park(Cell& cell, Word seen, Site site = Site::here()) {
    live();
    const auto changed = [&] { return Checked::load(cell, relaxed, site) != seen; };
    if (!room_.queue.fall_asleep(thread(), changed, site)) return true;
    const Awaitable woken{room_.queue.wakeups(thread().id()), Predicate(equals(1 + wakeups_)),
                          Ordering::acquire, site};
    const Awaitable trouble{room_.trouble.location, Predicate(equals(1)), Ordering::acquire, site};
    bool slept_on = thread().await_first({woken, trouble}) == 0;
    is_long_ = !slept_on;
    if (!slept_on && !is_gone(number_of(seen), site)) {
      const Awaitable other{cell.location, Predicate(Differs{seen}), Ordering::relaxed, site};
      slept_on = thread().await_first({woken, other}) == 0;
    }
    if (slept_on || !room_.queue.get_up(thread(), site)) ++wakeups_;
    return true;
  }
  void unpark(const Cell&, Site site = Site::here()) {
    live();
    room_.queue.wake_one(thread(), site);
  }

 private:
  const RobustRoom& room_;
  Word steps_left_ = ~Word{0};
  Word wakeups_ = 0;
  bool is_long_ = false;
};

class RobustRehearsal {
 public:
  RobustRehearsal(const LockScenario& scenario, Tuning& tuning, Memory& memory)
      : scenario_(scenario),
        tuning_(tuning),
        room_{.cells = {memory, 2, 0, 0},
              .queue = {},
              .trouble = {memory.add(0, "trouble")},
              .clients = scenario.clients,
              .mortal = scenario.variant == LockVariant::dies,
              .steps = scenario.clients > 2 ? 4U : 12U} {
    room_.queue = {memory, room_.cells.global(0).location, scenario.clients};
    for (const char* const name : {"first", "second"}) data_.push_back({memory.add(0, name)});
    if (first_has_it()) memory.set_initial(room_.cells.global(0).location, 1);
    held_ = {memory.add(0, "who had what was overwritten")};
  }

  void run(Thread& self) {
    if (self.id() == scenario_.clients) return overwrite(self);
    RobustPort m(self, tuning_, room_);
    const locks::Robust<RobustPort> lock({}, room_.cells);
    try {
      for (unsigned section = 0; section < scenario_.sections; ++section) execute(m, lock);
    } catch (const Dead&) {
      self.store(room_.trouble.location, 1, Ordering::release);
    }
  }

  const char* wrong_at_end(const Graph& graph) const {
    const auto at_end = [&](const Checked::Cell& cell) {
      return graph.newest_value(cell.location) != 0;
    };
    if (graph.newest_value(held_.location) != 0 && !at_end(room_.cells.global(1))) {
      return "nobody has seen that the word was overwritten";
    }
    const bool all_came_after = first_has_it();
    return all_came_after && at_end(room_.cells.global(0)) ? "somebody still has it" : nullptr;
  }

 private:
  /// Of three: else there are too many executions.
  bool first_has_it() const { return room_.mortal && scenario_.clients > 2; }

  void execute(RobustPort& m, const locks::Robust<RobustPort>& lock) {
    if (first_has_it() && m.thread().id() == 0) return change(m, lock);
    if (room_.mortal && m.thread().id() == 1 && !first_has_it()) {
      m.look();
      if (lock.try_acquire(m)) return change(m, lock);
    }
    if (lock.acquire(m)) return change(m, lock);
    m.thread().check(scenario_.variant != LockVariant::parks, "it gave up");
    if (!room_.mortal || first_has_it()) return;  // somebody may still be inside
    lock.acquire_anyway(m);
    lock.make_whole(m);
    m.thread().check(!lock.is_damaged(m), "it is damaged, and nobody else has it");
    m.write(data_[1], m.read(data_[0]));
    lock.release(m);
  }
  void change(RobustPort& m, const locks::Robust<RobustPort>& lock) {
    const Word before = m.read(data_[0]);
    m.thread().check(m.read(data_[1]) == before, "half of a section is seen");
    m.write(data_[0], before + 1);
    m.live();
    m.write(data_[1], before + 1);
    lock.release(m);
  }

  void overwrite(Thread& self) const {
    constexpr Word nobody = 77;
    const Word held = self.exchange(room_.cells.global(0).location, nobody, Ordering::relaxed);
    self.write(held_.location, held);
    self.store(room_.trouble.location, 1, Ordering::release);
  }

  const LockScenario scenario_;
  Tuning& tuning_;
  RobustRoom room_;
  std::vector<Checked::Plain<Word>> data_;
  Checked::Plain<Word> held_{};
};

inline Program rehearse_robust(const LockScenario& scenario, Tuning& tuning) {
  Program program{.name = scenario.name(), .threads = scenario.clients};
  if (scenario.variant == LockVariant::overwritten) ++program.threads;
  const auto rehearsal = std::make_shared<RobustRehearsal>(scenario, tuning, program.memory);
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  program.at_end = [rehearsal](const Graph& graph) { return rehearsal->wrong_at_end(graph); };
  return program;
}

}  // namespace muster::check
