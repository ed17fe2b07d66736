// SPDX-License-Identifier: BSD-3-Clause
// The program around lock/kept_posts.hpp: sections of another lock keep posts to a lock, and send
// them later; its owner, who knows that the sections are over, ends it. It executes what it finds,
// and nobody touches the lock after that.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "check/checked.hpp"
#include "check/graph.hpp"
#include "check/suite/lock_scenario.hpp"
#include "lock/desk.hpp"
#include "lock/kept_posts.hpp"

namespace muster::check {

class KeptRehearsal {
  using M = Checked;

 public:
  KeptRehearsal(unsigned senders, unsigned posts, Tuning& tuning, Memory& memory)
      : senders_(senders),
        posts_(posts),
        tuning_(tuning),
        cells_(memory, 4, senders, depth + 1),
        rings_(depth, cells_),
        executed_{memory.add(0, "executed")} {
    for (unsigned s = 0; s < senders * depth; ++s) {
      memory_.push_back({memory.add(0, "the lock's memory " + std::to_string(s))});
    }
  }

  void run(Thread& self) {
    M m(self, tuning_);
    if (self.id() < senders_) {
      send(m, self.id());
    } else {
      end(m);
    }
  }

  const char* at_end(const Graph& graph) const {
    return graph.newest_value(executed_.location) == senders_ * posts_
               ? nullptr
               : "a post was lost with its lock";
  }

 private:
  static constexpr unsigned depth = 2;

  struct Work {
    KeptRehearsal& all;
    Word number = 0;

    void put(M& m, unsigned slot) { m.write(all.memory_[slot], number); }
    void posted(M&) {}
    void run(M& m, unsigned slot) {
      m.thread().check(m.read(all.memory_[slot]) != 0, "executed before it was posted");
      m.fetch_add(all.executed_, 1, relaxed);
    }
  };

  void send(M& m, unsigned sender) {
    for (unsigned i = 0; i < posts_; ++i) locks::KeptPosts<M>::keep(m, kept());
    m.fetch_add(sections_over(), 1, release);
    locks::Rings<M>::Ticket ticket{sender};
    for (Word number = 1; number <= posts_; ++number) {
      locks::KeptPosts<M>::send(m, kept(), [&] {
        Work work{*this, number};
        desk().enter(m, ticket);
        rings_.post(m, ticket, 0, work);
      });
    }
  }

  void end(M& m) {
    if (!m.await(sections_over(), equals(senders_), acquire)) return;
    if (!locks::KeptPosts<M>::await_sent(m, kept())) return;
    Work work{*this};
    while (desk().pass(m, work) != 0) {
    }
    for (M::Plain<Word>& word : memory_) m.write(word, Word(0));  // another's, now
  }

  locks::Desk<M> desk() const { return {&cells_.global(0), &cells_.global(1), rings_, 0}; }
  M::Cell& kept() const { return cells_.global(2); }
  M::Cell& sections_over() const { return cells_.global(3); }

  const unsigned senders_;
  const unsigned posts_;
  Tuning& tuning_;
  M::Cells cells_;
  locks::Rings<M> rings_;
  M::Cell executed_;
  std::vector<M::Plain<Word>> memory_;
};

inline Program rehearse_kept(const LockScenario& scenario, Tuning& tuning) {
  Program program{.name = scenario.name(), .threads = scenario.clients + 1};
  const auto rehearsal =
      std::make_shared<KeptRehearsal>(scenario.clients, scenario.sections, tuning, program.memory);
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  program.at_end = [rehearsal](const Graph& graph) { return rehearsal->at_end(graph); };
  return program;
}

}  // namespace muster::check
