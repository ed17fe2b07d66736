// SPDX-License-Identifier: BSD-3-Clause
// A barrier with plain data around it, as a program to be explored.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "check/checked.hpp"
#include "check/suite/scenario.hpp"
#include "machine/lifetime.hpp"

namespace muster::check {

/// A barrier with plain data around it.
template <class B>
class Rehearsal {
 public:
  Rehearsal(const Scenario& scenario, Tuning& tuning, Memory& memory)
      : scenario_(scenario), tuning_(tuning) {
    const unsigned n = scenario.participants;
    shape_ = {.participants = n,
              .radix = scenario.algorithm.radix,
              .first_episode = scenario.variant == Variant::wraps ? ~Word{0} : Word{0},
              .groups = scenario_.groups.levels.empty() ? nullptr : &scenario_.groups};
    // What `following` begins with is simple: what schedules may be, `scheduled` shows.
    const bool scheduled = scenario.algorithm.name == "scheduled";
    schedule_ = compose_proved(shape_.groups, n,
                               scheduled ? scenario.algorithm.recipe : parse_recipe("flat+line"));
    shape_.schedule = &schedule_;
    if (scenario.variant == Variant::changes) {
      for (const char* recipe : {"count+line1", "flat+line1"}) {
        others_to_run_.push_back(pack(compose_proved(nullptr, n, parse_recipe(recipe))));
      }
    }
    cells_ = cells(memory, "");
    prepare(memory, cells_);
    if (scenario.variant == Variant::reuse) {
      const Layout layout = Dissemination<Checked>::layout(shape_);
      others_ = {memory, layout.global_cells, n, layout.cells_per_rank, "second barrier's "};
    }
    // Two sets, used in turn: what was read after one episode is written again before the next but
    // one, which is right only if the barrier orders reads before later writes, too.
    for (unsigned set = 0; set < 2; ++set) {
      for (unsigned r = 0; r < n; ++r) {
        data_[set].push_back({memory.add(0, name("data", r, set))});
      }
      completed_[set] = {memory.add(0, "completion, set " + std::to_string(set))};
    }
    if (!has_marks()) return;
    broken_ = {memory.add(0, "broken")};
    memory_ = {memory.add(0, "the barrier's memory")};
    destroyer_ = {memory.add(0, "who destroys it")};
    for (unsigned r = 0; r < n; ++r) {
      phases_.push_back({memory.add(0, "phase of rank " + std::to_string(r))});
      notes_.push_back({memory.add(0, "note of rank " + std::to_string(r))});
    }
  }

  void run(Thread& self) {
    Checked port(self, tuning_);
    const B barrier(shape_, cells_);
    if (scenario_.variant == Variant::timed) set_patience(port);
    if (scenario_.variant == Variant::changes) {
      // In turn, whatever it sees: a body is run again from its start.
      port.set_composer([this, next = std::size_t{0}](std::span<const Word>) mutable {
        return std::span<const Word>(others_to_run_[next++ % others_to_run_.size()]);
      });
    }
    if (scenario_.variant == Variant::destroy && self.id() == 0) {
      port.write(destroyer_, self.choose(shape_.participants));
    }
    if (!episodes(port, barrier, 0)) return;
    if (scenario_.variant == Variant::destroy) destroy(port);
    if (scenario_.variant != Variant::reuse) return;
    // The second barrier tells when everybody has left the first, and when it is there again.
    const Dissemination<Checked> second(shape_, others_);
    auto ticket = second.ticket(self.id());
    if (!second.wait(port, ticket)) return;
    if (self.id() == 0) {
      for (Checked::Cell cell : cells_.all()) port.store(cell, 0, relaxed);
    }
    if (!second.wait(port, ticket)) return;
    episodes(port, barrier, scenario_.episodes);
  }

 private:
  static std::string name(const char* what, unsigned rank, unsigned set) {
    return std::string(what) + " of rank " + std::to_string(rank) + ", set " + std::to_string(set);
  }

  Checked::Cells cells(Memory& memory, const std::string& prefix) const {
    const Layout layout = B::layout(shape_);
    return {memory, layout.global_cells, shape_.participants, layout.cells_per_rank,
            prefix, layout.words};
  }

  void prepare(Memory& memory, const Checked::Cells& where) const {
    Checked setup(memory, tuning_);
    if (shape_.first_episode != 0) B(shape_, where).prepare(setup);
  }

  bool episodes(Checked& port, const B& barrier, Word first) {
    const unsigned me = port.thread().id();
    auto ticket = barrier.ticket(me);
    Word phase = 0;
    for (Word episode = first; episode < first + scenario_.episodes; ++episode) {
      const unsigned set = episode % 2;
      const Word value = episode + 1;
      port.set_completion([&, set, value] { return complete(port, set, value); });
      port.write(data_[set][me], value);
      if (!wait(port, barrier, ticket, phase)) return false;
      if (B::traits.champion != Champion::nobody) {
        port.thread().check(port.read(completed_[set]) == value, "the completion has not run");
      }
      everybody_wrote(port, data_[set], value);
    }
    return true;
  }

  bool has_marks() const {
    return scenario_.variant == Variant::timed || scenario_.variant == Variant::destroy;
  }

  /// As the C interface does it: in, through, and out again.
  bool wait(Checked& port, const B& barrier, typename B::Ticket& ticket, Word& phase) {
    if (!has_marks()) return pass(port, barrier, ticket);
    Checked atoms(port.thread(), tuning_);
    Checked::Cell& mine = phases_[port.thread().id()];
    if (!enter(atoms, broken_, mine, phase)) {
      is_told(port);
      return false;
    }
    const bool passed = pass(port, barrier, ticket);
    if (!passed) is_told(port);
    port.read(memory_);  // what destroy frees is still there
    leave(atoms, mine, phase);
    phase += 2;
    if (!passed) {
      const bool again = enter(atoms, broken_, mine, phase);
      port.thread().check(!again, "a broken barrier let somebody in");
    }
    return passed;
  }

  /// Whoever fails knows who broke the barrier, and sees what that one did before.
  void is_told(Checked& port) {
    Checked atoms(port.thread(), tuning_);
    const Word why = why_broken(atoms, broken_);
    port.thread().check(why != 0, "somebody gave up, and the barrier is whole");
    port.thread().check(port.read(notes_[why - 1]) == 1, "the note of who broke it is not there");
  }

  /// In one of its first waits, or in none, this participant's patience ends.
  void set_patience(Checked& port) {
    const Word chosen = port.thread().choose(1 + waits_with_an_end);
    const unsigned me = port.thread().id();
    port.set_patience({&broken_, chosen - 1, [this, &port, me] {
                         Checked atoms(port.thread(), tuning_);
                         port.write(notes_[me], Word{1});
                         break_for_all(atoms, broken_, me + 1);
                       }});
  }

  /// One of them, anyone, frees the memory as soon as its own last wait has returned.
  void destroy(Checked& port) {
    if (port.read(destroyer_) != port.thread().id()) return;
    Checked atoms(port.thread(), tuning_);
    for (Checked::Cell& phase : phases_) await_left(atoms, phase);
    port.write(memory_, Word{1});
  }

  bool pass(Checked& port, const B& barrier, typename B::Ticket& ticket) {
    if constexpr (B::traits.splits) {
      if (scenario_.variant == Variant::split) {
        return barrier.arrive(port, ticket) && barrier.depart(port, ticket);
      }
    }
    return barrier.wait(port, ticket);
  }

  /// The completion runs when all have arrived and none has left.
  bool complete(Checked& port, unsigned set, Word value) {
    everybody_wrote(port, data_[set], value);
    port.write(completed_[set], value);
    return true;
  }

  void everybody_wrote(Checked& port, const std::vector<Checked::Plain<Word>>& data, Word value) {
    for (const auto& word : data) {
      port.thread().check(port.read(word) == value, "somebody has passed before all had arrived");
    }
  }

  static constexpr Word waits_with_an_end = 4;

  const Scenario scenario_;
  Tuning& tuning_;
  Shape shape_;
  Schedule schedule_;                             ///< what shape_ points to
  std::vector<std::vector<Word>> others_to_run_;  ///< that it changes to
  Checked::Cells cells_;
  Checked::Cells others_;
  std::array<std::vector<Checked::Plain<Word>>, 2> data_;
  std::array<Checked::Plain<Word>, 2> completed_;
  Checked::Cell broken_{};
  std::vector<Checked::Cell> phases_;
  std::vector<Checked::Plain<Word>> notes_;
  Checked::Plain<Word> memory_{};
  Checked::Plain<Word> destroyer_{};
};

/// The program for one barrier; the tuning must outlive it.
template <class B>
Program rehearse(const Scenario& scenario, Tuning& tuning) {
  Program program{.name = scenario.name(), .threads = scenario.participants};
  tuning.may_give_up = scenario.variant == Variant::gives_up;
  const auto rehearsal = std::make_shared<Rehearsal<B>>(scenario, tuning, program.memory);
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  return program;
}

}  // namespace muster::check
