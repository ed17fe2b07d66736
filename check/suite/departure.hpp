// SPDX-License-Identifier: BSD-3-Clause
// The program around lock/departure.hpp: clients post for one lock and do not wait, while the
// server leaves. What is posted is executed once, in its client's order, by the server or by its
// client.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "check/begin.hpp"
#include "check/checked.hpp"
#include "check/graph.hpp"
#include "check/suite/lock_scenario.hpp"
#include "lock/auto.hpp"
#include "lock/departure.hpp"

namespace muster::check {

/// The primitives that the handshake names; both fences are seq_cst here.
struct DepartureLot {
  Checked& m;
  Tuning& tuning;

  void swap_in(Checked::Cell& cell, Word word) { m.exchange(cell, word, relaxed); }
  Word peek(const Checked::Cell& cell) { return m.load(cell, relaxed); }
  void light_fence(Site site = Site::here()) { fence("light fence", site); }
  void heavy_fence(Site site = Site::here()) { fence("heavy fence", site); }
  void fence(const char* what, Site site) {
    m.thread().fence(tuning.order_at(site, what, Ordering::seq_cst), site);
  }
};

class DepartureRehearsal {
  using Lot = DepartureLot;

 public:
  DepartureRehearsal(unsigned clients, unsigned posts, Tuning& tuning, Memory& memory)
      : clients_(clients),
        posts_(posts),
        tuning_(tuning),
        cells_(memory, 5, clients, depth + 1),
        rings_(depth, cells_),
        executed_{memory.add(0, "executed")} {
    for (unsigned c = 0; c < clients; ++c) {
      last_.push_back({memory.add(0, "last of client " + std::to_string(c))});
    }
    for (unsigned s = 0; s < clients * depth; ++s) {
      slots_.push_back({memory.add(0, "slot " + std::to_string(s))});
    }
    Checked setup(memory, tuning_);
    setup.store(server_cell(), 1, relaxed);
  }

  /// Of three clients all are known then, and the first has left its request to the server.
  void begin(Program& program) const {
    if (clients_ < 3) return;
    const auto entry = [&](unsigned client) { return cells_.of(client, 0).location; };
    check::begin(program, {{0}, {1, entry(1)}, {2, entry(2)}});
  }

  void run(Thread& self) {
    Checked m(self, tuning_);
    if (self.id() < clients_) {
      post(m, self.id());
    } else {
      serve_and_leave(m);
    }
  }

  const char* at_end(const Graph& graph) const {
    return graph.newest_value(executed_.location) == clients_ * posts_
               ? nullptr
               : "a request was left over, or executed twice";
  }

 private:
  using Lock = locks::Auto<Checked>;
  static constexpr unsigned depth = 2;

  /// A request is its number, from 1 on.
  struct Work {
    DepartureRehearsal& all;
    Word number = 0;

    void run_own(Checked&) {}
    void put(Checked& m, unsigned slot) { m.write(all.slots_[slot], number); }
    void posted(Checked&) {}
    void run(Checked& m, unsigned slot) {
      Checked::Plain<Word>& last = all.last_[slot / depth];
      const Word next = m.read(last) + 1;
      m.thread().check(m.read(all.slots_[slot]) == next, "executed twice, or not in its turn");
      m.write(last, next);
      m.fetch_add(all.executed_, 1, relaxed);
    }
  };

  /// As a station's clients do.
  void post(Checked& m, unsigned client) {
    const Lock lock(desk(), {cells_.global(2), cells_.global(4)}, &server_cell());
    Lock::Ticket ticket = lock.ticket(client);
    for (Word number = 1; number <= posts_; ++number) {
      Work work{*this, number};
      desk().enter(m, ticket.ring);
      Checked::Cell* const entry = rings_.post(m, ticket.ring, 0, work);
      if (entry == nullptr) return;
      if (locks::is_left_to_server(Lot{m, tuning_}, server_cell())) continue;
      const auto combines = [] { return true; };
      if (!lock.finish(m, ticket.ring, ticket.habit, *entry, work, combines)) return;
    }
  }

  std::vector<Checked::Cell*> look(Checked& m) {
    std::vector<Checked::Cell*> pending;
    const Word count = m.load(cells_.global(1), relaxed);
    for (unsigned client = 0; client < count; ++client) {
      for (unsigned at = 0; at < depth; ++at) {
        Checked::Cell& entry = cells_.of(client, at);
        if (m.load(entry, relaxed) != 0) pending.push_back(&entry);
      }
    }
    return pending;
  }

  /// As a station's server does: what is pending when it leaves is executed before it has left.
  void serve_and_leave(Checked& m) {
    const auto pending =
        locks::Departure<Lot>::leave(Lot{m, tuning_}, server_cell(), [&] { return look(m); });
    Work work{*this};
    for (Checked::Cell* const entry : pending) {
      while (m.load(*entry, relaxed) != 0) {
        if (desk().take(m)) {
          desk().pass(m, work);
          desk().give(m);
        } else if (!m.await(*desk().held, equals(0), relaxed)) {
          return;
        }
      }
    }
  }

  locks::Desk<Checked> desk() const { return {&cells_.global(0), &cells_.global(1), rings_, 0}; }
  Checked::Cell& server_cell() const { return cells_.global(3); }

  const unsigned clients_;
  const unsigned posts_;
  Tuning& tuning_;
  Checked::Cells cells_;
  locks::Rings<Checked> rings_;
  Checked::Cell executed_;
  std::vector<Checked::Plain<Word>> last_;
  std::vector<Checked::Plain<Word>> slots_;
};

inline Program rehearse_departure(const LockScenario& scenario, Tuning& tuning) {
  Program program{.name = scenario.name(), .threads = scenario.clients + 1};
  const auto rehearsal = std::make_shared<DepartureRehearsal>(scenario.clients, scenario.sections,
                                                              tuning, program.memory);
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  rehearsal->begin(program);
  program.at_end = [rehearsal](const Graph& graph) { return rehearsal->at_end(graph); };
  return program;
}

}  // namespace muster::check
