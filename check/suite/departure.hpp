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
#include "check/suite/lot.hpp"
#include "lock/auto.hpp"
#include "lock/departure.hpp"

namespace muster::check {

/// The primitives that the handshake names.
struct DepartureLot : Lot {
  void swap_in(const Checked::Cell& cell, Word word) {
    thread.exchange(cell.location, word, Ordering::relaxed);
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
    for (unsigned r = 0; r < clients * posts; ++r) {
      done_.push_back({memory.add(0, "done by request " + std::to_string(r))});
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
      m.write(all.done(slot / depth, next), Word(1));
      m.fetch_add(all.executed_, 1, relaxed);
    }
  };

  /// As a station's clients do.
  void post(Checked& m, unsigned client) {
    const Lock lock(desk(), {cells_.global(2), cells_.global(4)}, &server_cell());
    Lock::Ticket ticket = lock.ticket(client);
    for (Word number = 1; number <= posts_; ++number) {
      Work work{*this, number};
      Checked::Cell* const entry = lock.post(m, ticket.ring, work);
      if (entry == nullptr) return;
      if (locks::is_left_to_server(lot(m), server_cell())) continue;
      const auto combines = [] { return true; };
      if (!lock.finish(m, ticket.ring, ticket.habit, *entry, work, combines)) return;
    }
  }

  template <class Fn>
  void for_each_entry(Checked& m, Fn fn) const {
    const Word count = m.load(cells_.global(1), relaxed);
    for (unsigned client = 0; client < count; ++client) {
      for (unsigned at = 0; at < depth; ++at) fn(client, cells_.of(client, at));
    }
  }

  /// As a station's server does: what is pending when it leaves is executed before it has left.
  void serve_and_leave(Checked& m) {
    Work work{*this};
    const auto each_entry = [&](auto look) {
      for_each_entry(m, [&](unsigned, const Checked::Cell& entry) { look(entry); });
    };
    locks::Pending<Checked> last;
    locks::depart(m, lot(m), server_cell(), each_entry, last, [&] {
      if (desk().take(m)) {
        desk().pass(m, work);
        desk().give(m);
      } else {
        m.await(*desk().held, equals(0), relaxed);
      }
    });
    // Who has stopped the server sees what these have done.
    for (const auto& [entry, request] : last) {
      const Word number = locks::Rings<Checked>::number_of(request);
      for_each_entry(m, [&, at = entry](unsigned client, const Checked::Cell& other) {
        if (&other == at) m.read(done(client, number));
      });
    }
  }

  /// Of a client's request with that number.
  Checked::Plain<Word>& done(unsigned client, Word number) {
    return done_[client * posts_ + number - 1];
  }
  Lot lot(Checked& m) const { return {{m.thread(), tuning_}}; }
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
  std::vector<Checked::Plain<Word>> done_;
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
