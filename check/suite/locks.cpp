// SPDX-License-Identifier: BSD-3-Clause
#include "check/suite/locks.hpp"

#include <memory>

#include "lock/registry.hpp"

namespace muster::check {
namespace {

using locks::Shape;

/// Words that sections change and clients read.
struct Data {
  Checked::Plain<Word> count;
  std::vector<Checked::Plain<Word>> argument;  ///< each client's; what it wants done
  std::vector<Checked::Plain<Word>> executed;  ///< number of each client's last section
  std::vector<Checked::Plain<Word>> result;
  std::vector<Checked::Plain<Word>> slots;  ///< whose request is there

  Data(Memory& memory, unsigned clients, unsigned slot_count) {
    const auto word = [&](const std::string& name) {
      return Checked::Plain<Word>{memory.add(0, name)};
    };
    count = word("count");
    for (unsigned c = 0; c < clients; ++c) {
      const std::string of = " of client " + std::to_string(c);
      argument.push_back(word("argument" + of));
      executed.push_back(word("executed" + of));
      result.push_back(word("result" + of));
    }
    for (unsigned s = 0; s < slot_count; ++s) slots.push_back(word("slot " + std::to_string(s)));
  }
};

/// A client's work: what lock/shape.hpp asks for.
class CheckedWork {
 public:
  CheckedWork(Data& data, unsigned client) : data_(data), client_(client) {}

  void run_own(Checked& m) { execute(m, client_); }
  void put(Checked& m, unsigned slot) { m.write(data_.slots[slot], client_ + 1); }
  void run(Checked& m, unsigned slot) { execute(m, m.read(data_.slots[slot]) - 1); }

 private:
  void execute(Checked& m, Word client) {
    m.thread().check(client < data_.argument.size(), "a slot without a request was executed");
    m.write(data_.count, m.read(data_.count) + 1);
    const Word number = m.read(data_.argument[client]);
    m.thread().check(m.read(data_.executed[client]) + 1 == number,
                     "a section was executed twice, or not in its turn");
    m.write(data_.executed[client], number);
    m.write(data_.result[client], 10 * number + client);
  }

  Data& data_;
  unsigned client_;
};

/// A lock with clients around it, and a server where there is one.
template <class L>
class LockRehearsal {
 public:
  LockRehearsal(const LockScenario& scenario, Tuning& tuning, Memory& memory)
      : scenario_(scenario),
        tuning_(tuning),
        shape_{.clients = scenario.clients, .clusters = 2, .limit = 2},
        layout_(L::layout(shape_)),
        cells_(memory, layout_.global_cells + 2 + scenario.clients, layout_.slots,
               layout_.cells_per_slot),
        data_(memory, scenario.clients, layout_.slots),
        finished_{memory.add(0, "clients that have done")} {
    Checked setup(memory, tuning_);
    const L lock(shape_, cells_);
    if constexpr (requires { lock.prepare(setup); }) lock.prepare(setup);
  }

  void run(Thread& self) {
    Checked m(self, tuning_);
    const L lock = make(self.id());
    if (self.id() == scenario_.clients) return serve(m, lock);
    typename L::Ticket ticket = lock.ticket(self.id());
    for (Word number = 1; number <= scenario_.sections; ++number) {
      CheckedWork work(data_, self.id());
      m.write(data_.argument[self.id()], number);
      if (!lock.execute(m, ticket, work)) return;
      self.check(m.read(data_.executed[self.id()]) == number, "the section was not executed");
      self.check(m.read(data_.result[self.id()]) == 10 * number + self.id(), "another's result");
    }
    if (!has_server()) return;
    const Word before = m.fetch_add(finished_, 1, relaxed);
    const Word last = scenario_.variant == LockVariant::shutdown ? 0 : scenario_.clients - 1;
    if constexpr (requires { lock.stop(m); }) {
      if (before == last) lock.stop(m);
    }
  }

 private:
  bool has_server() const { return scenario_.variant != LockVariant::plain; }
  /// After the lock's cells; those of the participants' own hints follow.
  Checked::Cell& server_cell() { return cells_.global(layout_.global_cells); }

  L make(unsigned client) {
    if constexpr (std::is_same_v<L, locks::Auto<Checked>>) {
      // Of several clients each gives its hints to itself: what they are good for, the programs
      // without a server show; here they get lost.
      const unsigned own = layout_.global_cells + 1 + client;
      Checked::Cell& wanted = cells_.global(scenario_.clients == 1 ? 2 : own);
      if (has_server()) return L(desk(), wanted, &server_cell());
    }
    return L(shape_, cells_);
  }
  locks::Desk<Checked> desk() const {
    return {&cells_.global(0), &cells_.global(1), {1, cells_}, 0};
  }

  void serve(Checked& m, const L& lock) {
    CheckedWork work(data_, scenario_.clients);
    if constexpr (requires { lock.serve(m, work); }) {
      static_cast<void>(lock.serve(m, work));
    } else {
      // What a station's server does, twice; it waits for nobody.
      m.store(server_cell(), 1, relaxed);
      for (int passes = 0; passes < 2; ++passes) {
        if (!desk().take(m)) continue;
        desk().pass(m, work);
        desk().give(m);
      }
      m.store(server_cell(), 0, relaxed);
    }
  }

  const LockScenario scenario_;
  Tuning& tuning_;
  Shape shape_;
  locks::Layout layout_;
  Checked::Cells cells_;
  Data data_;
  Checked::Cell finished_;
};

/// A client posts for two locks in turn; a participant has each of them, and looks too early, too.
class RingsRehearsal {
 public:
  RingsRehearsal(const LockScenario& scenario, Tuning& tuning, Memory& memory)
      : scenario_(scenario),
        tuning_(tuning),
        cells_(memory, 0, 1, depth + 1),
        rings_(depth, cells_),
        data_(memory, 1, depth) {}

  void run(Thread& self) {
    Checked m(self, tuning_);
    if (self.id() == 0) return post(m);
    const Word lock = self.id() - 1;
    RingWork work{data_};
    for (Word number = 1; number <= scenario_.sections; ++number) {
      if (number % 2 != lock) continue;
      if (rings_.serve(m, 0, lock, work)) continue;
      // Not posted yet, or it is the other lock's turn.
      const Word before = locks::Rings<Checked>::served_after(number - 1);
      if (!m.await(cells_.of(0, depth), at_least(before), relaxed)) return;
      const std::vector<Checked::Cell*> either{&rings_.at_last(m, 0), &rings_.at_last(m, 0, 1)};
      const Word request = locks::Rings<Checked>::request(number, lock);
      if (m.await_any(either, equals(request), relaxed) == no_cell) return;
      self.check(rings_.serve(m, 0, lock, work), "a request is not executed");
    }
  }

 private:
  static constexpr unsigned depth = 2;

  /// The request is its number, in its slot; sections of both locks change the same word.
  struct RingWork {
    Data& data;
    Word number = 0;

    void put(Checked& m, unsigned slot) { m.write(data.slots[slot], number); }
    void run(Checked& m, unsigned slot) {
      const Word next = m.read(data.executed[0]) + 1;
      m.thread().check(m.read(data.slots[slot]) == next, "executed twice, or not in its turn");
      m.write(data.executed[0], next);
    }
  };

  void post(Checked& m) {
    locks::Rings<Checked>::Ticket ticket{.client = 0};
    Checked::Cell* entry = nullptr;
    for (Word number = 1; number <= scenario_.sections; ++number) {
      if (number == 3 && scenario_.sections == 3) {  // it may use the first entry without a look
        if (!m.await(*entry, equals(0), acquire)) return;
        rings_.has_answer(ticket);
      }
      RingWork work{data_, number};
      entry = rings_.post(m, ticket, number % 2, work);
      if (entry == nullptr) return;
    }
    if (!m.await(*entry, equals(0), acquire)) return;
    m.thread().check(m.read(data_.executed[0]) == scenario_.sections, "not all were executed");
  }

  const LockScenario scenario_;
  Tuning& tuning_;
  Checked::Cells cells_;
  locks::Rings<Checked> rings_;
  Data data_;
};

bool has_server(LockVariant variant) {
  return variant == LockVariant::server || variant == LockVariant::shutdown;
}

constexpr const char* rings_name = "rings";

}  // namespace

const char* variant_name(LockVariant variant) {
  constexpr const char* names[] = {"plain", "server", "shutdown", "rings"};
  return names[static_cast<int>(variant)];
}

std::string LockScenario::name() const {
  std::string text = lock + ", " + std::to_string(clients) + " clients, " +
                     std::to_string(sections) + (sections == 1 ? " section" : " sections");
  if (variant != LockVariant::plain) text += std::string(", ") + variant_name(variant);
  return text;
}

Program make_lock_program(const LockScenario& scenario, Tuning& tuning) {
  Program program{.name = scenario.name(), .threads = scenario.clients};
  if (scenario.variant == LockVariant::rings) {
    program.threads = 3;
    const auto rehearsal = std::make_shared<RingsRehearsal>(scenario, tuning, program.memory);
    program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
    return program;
  }
  if (has_server(scenario.variant)) ++program.threads;
  locks::with_lock<Checked>(scenario.lock, [&]<class L>() {
    const auto rehearsal = std::make_shared<LockRehearsal<L>>(scenario, tuning, program.memory);
    program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  });
  return program;
}

std::vector<std::string> checked_locks() {
  std::vector<std::string> names;
  for (const std::string_view name : locks::lock_names()) {
    if (name != locks::PthreadMutex::traits.name) names.emplace_back(name);
  }
  names.emplace_back(rings_name);
  return names;
}

std::vector<LockScenario> lock_scenarios(const std::string& lock) {
  std::vector<LockScenario> all;
  if (lock == rings_name) {
    for (const unsigned sections : {2U, 3U, 4U}) {
      all.push_back({lock, 1, sections, LockVariant::rings});
    }
    return all;
  }
  const locks::Style style = locks::traits_of(lock).style;
  const auto add = [&](unsigned clients, unsigned sections, LockVariant variant) {
    all.push_back({lock, clients, sections, variant});
  };
  // rcl-batch has to have its server.
  const bool alone = lock != locks::RclBatch<Checked>::traits.name;
  if (alone) add(2, 1, LockVariant::plain);
  if (alone) add(2, 2, LockVariant::plain);
  if (style == locks::Style::server || style == locks::Style::adaptive) {
    add(1, 2, LockVariant::server);
    add(2, 1, LockVariant::server);
  }
  if (style == locks::Style::server && alone) {
    add(1, 2, LockVariant::shutdown);
    add(2, 1, LockVariant::shutdown);
  }
  if (style != locks::Style::server) add(3, 1, LockVariant::plain);
  return all;
}

std::vector<Rehearsed> mutation_programs_of_lock(const std::string& lock) {
  std::vector<Rehearsed> all;
  std::vector<LockScenario> scenarios = lock_scenarios(lock);
  // What rings promise to several locks, the locks that stand on them alone do not need.
  if (lock == "flat-combining" || lock == "rcl" || lock == "auto") {
    for (const LockScenario& scenario : lock_scenarios(rings_name)) scenarios.push_back(scenario);
  }
  for (const LockScenario& scenario : scenarios) {
    // Hundreds of thousands of executions, which show no more than the cheaper ones.
    if (lock == "auto" && scenario.clients == 2 && has_server(scenario.variant)) continue;
    all.push_back({scenario.name(),
                   [scenario](Tuning& tuning) { return make_lock_program(scenario, tuning); }});
  }
  return all;
}

}  // namespace muster::check
