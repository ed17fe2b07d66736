// SPDX-License-Identifier: BSD-3-Clause
// The program around lock/seats.hpp: threads take a seat, post a request there and end, whether or
// not it is executed by then; others go on in their seats. The server goes by the seats that are
// used, and sleeps when it finds nothing, for ever if nobody wakes it. Mutants are compiled with a
// copy of this.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "check/begin.hpp"
#include "check/checked.hpp"
#include "check/graph.hpp"
#include "check/suite/bell.hpp"
#include "check/suite/exclusion.hpp"
#include "lock/seats.hpp"

namespace muster::check {

/// The machine: a participant's port, whose seats are in one word.
class Seated : public Checked {
 public:
  using Bits = Word;
  using Mutex = TicketMutex;
  struct Memory {
    Checked::Plain<Word> taken;
    Cell used;
  };

  Seated(Thread& thread, Tuning& tuning, Memory& memory)
      : Checked(thread, tuning), memory_(memory) {}

  template <class Body>
  auto within(const Mutex& mutex, Body body) {
    const Word turn = mutex.lock(thread());
    return then_leave(body, [&] { mutex.unlock(thread(), turn); });
  }
  Bits taken(unsigned) { return read(memory_.taken); }
  void set_taken(unsigned, Bits bits) { write(memory_.taken, bits); }
  Bits used(unsigned) { return load(memory_.used, relaxed); }
  void set_used(unsigned, Bits bits) { store(memory_.used, bits, relaxed); }
  Word next_client(Word from, Word end) { return locks::Seats<Seated>::next(*this, from, end); }

 private:
  Memory& memory_;
};

class SeatsRehearsal {
  using M = Seated;
  using Rings = locks::Rings<M>;

 public:
  SeatsRehearsal(const LockScenario& scenario, Tuning& tuning, Memory& memory)
      : clients_(scenario.clients),
        posts_(scenario.sections),
        tuning_(tuning),
        cells_(memory, 1, clients_, depth + 1),
        rings_(depth, cells_),
        memory_{{memory.add(0, "taken")}, {memory.add(0, "used")}},
        all_{{memory.add(0, "sleepers")},
             {memory.add(0, "sleepers on the bell")},
             {memory.add(0, "bell")}},
        wakes_{memory.add(0, "wake-ups")},
        executed_{memory.add(0, "executed")} {
    seats_.mutex = {{memory.add(0, "mutex")}, {memory.add(0, "turn")}};
    for (unsigned s = 0; s < clients_; ++s) {
      const std::string of = " of seat " + std::to_string(s);
      left_.push_back({{memory.add(0, "requests posted" + of)}, {memory.add(0, "place" + of)}});
      for (unsigned i = 0; i < depth; ++i) slots_.push_back({memory.add(0, "slot" + of)});
    }
  }

  void run(Thread& self) {
    M m(self, tuning_, memory_);
    if (self.id() < clients_) {
      for (unsigned i = 0; i < posts_; ++i) live(m);
    } else {
      locks::serve(m, rings_, Server{{m, cells_.global(0)}, *this});
    }
  }

  /// Of two threads the first one has posted then, and is about to ring. Of three the first two
  /// have rung, too, and are about to end.
  void begin(Program& program) const {
    const Location mutex = seats_.mutex.drawn.location;
    if (clients_ == 2) check::begin(program, {{0, all_.any_sleepers.location}});
    if (clients_ == 3) check::begin(program, {{0, mutex, 1}, {1, mutex, 1}});
  }

  const char* at_end(const Graph& graph) const {
    if (graph.newest_value(executed_.location) != clients_ * posts_) return "a request is lost";
    return graph.newest_value(memory_.taken.location) == 0 ? nullptr : "a seat is lost";
  }

 private:
  static constexpr unsigned depth = 2;

  /// What a seat's ring knows, for the next thread there.
  struct Left {
    Checked::Plain<Word> posted;
    Checked::Plain<Word> place;  ///< of the last one
  };
  struct Work {
    SeatsRehearsal& all;

    void put(M& m, unsigned slot) { m.write(all.slots_[slot], Word(1)); }
    void posted(M& m) { locks::Bell<BellLot>::ring(all.lot(m), all.all_); }
    void run(M& m, unsigned slot) {
      m.thread().check(m.read(all.slots_[slot]) == 1, "executed twice, or not posted");
      m.write(all.slots_[slot], Word(0));
      m.fetch_add(all.executed_, 1, relaxed);
    }
  };

  /// A thread, from its first call to its end.
  void live(M& m) {
    const unsigned seat = seats_.take(m, clients_);
    m.thread().check(seat < clients_, "a seat is lost");
    Left& left = left_[seat];
    typename Rings::Ticket ticket{seat};
    ticket.posted = m.read(left.posted);
    ticket.place = m.read(left.place);
    ticket.entered = ticket.posted != 0;
    if (!ticket.entered) locks::raise_clients(m, cells_.global(0), seat);
    Work work{*this};
    if (rings_.post(m, ticket, 0, work) == nullptr) return;
    m.write(left.posted, ticket.posted);
    m.write(left.place, ticket.place);
    seats_.give_back(
        m, 1, [&](unsigned) { return seat; }, clients_,
        [&](unsigned other) {
          // Nobody has it, so what was left there is not changed.
          return m.load(cells_.of(other, m.read(left_[other].place)), relaxed) != 0;
        });
  }

  struct Server : locks::Walk<M> {
    SeatsRehearsal& all;
    Work work{all};

    bool goes_on(bool found) {
      if (port_.load(all.executed_, relaxed) == all.clients_ * all.posts_) return false;
      const auto is_wanted = [this] {
        return locks::any_pending(port_, all.rings_, all.cells_.global(0));
      };
      if (!found) locks::Bell<BellLot>::sleep(all.lot(port_), all.all_, is_wanted);
      return true;
    }
    static bool take(Word) { return true; }
    /// Nobody else has it.
    struct Lock {
      static bool is_wanted(M&) { return false; }
      static void ask(M&) {}
      static void give_and_let_in(M&) {}
    };
    static Lock lock(Word) { return {}; }
    bool execute(Word, Word client, const Rings::Next& next) {
      locks::execute_row(port_, all.rings_, client, next, work, [] { return true; });
      return true;
    }
    static bool has_given() { return true; }
  };

  BellLot lot(M& m) const { return {{m.thread(), tuning_}, wakes_}; }

  const unsigned clients_;
  const unsigned posts_;
  Tuning& tuning_;
  Checked::Cells cells_;
  Rings rings_;
  Seated::Memory memory_;
  locks::Seats<M> seats_;
  Announcements<Checked::Cell> all_;
  Checked::Cell wakes_;
  Checked::Cell executed_;
  std::vector<Left> left_;
  std::vector<Checked::Plain<Word>> slots_;
};

inline Program rehearse_seats(const LockScenario& scenario, Tuning& tuning) {
  Program program{.name = scenario.name(), .threads = scenario.clients + 1};
  const auto rehearsal = std::make_shared<SeatsRehearsal>(scenario, tuning, program.memory);
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  rehearsal->begin(program);
  program.at_end = [rehearsal](const Graph& graph) { return rehearsal->at_end(graph); };
  return program;
}

}  // namespace muster::check
