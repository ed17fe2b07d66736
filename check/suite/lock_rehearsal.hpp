// SPDX-License-Identifier: BSD-3-Clause
// Locks with clients, plain data and perhaps a server around them, as programs to be explored.
// Mutants are compiled with a copy of this.
#pragma once

#include <array>
#include <bit>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "check/checked.hpp"
#include "check/suite/lock_scenario.hpp"
#include "lock/auto.hpp"
#include "lock/registry.hpp"
#include "lock/round.hpp"

namespace muster::check {

/// Words that sections change and clients read.
struct Data {
  std::vector<Checked::Plain<Word>> count;     ///< of each lock's sections
  std::vector<Checked::Plain<Word>> argument;  ///< each client's; what it wants done
  std::vector<Checked::Plain<Word>> executed;  ///< number of each client's last section
  std::vector<Checked::Plain<Word>> result;
  std::vector<Checked::Plain<Word>> slots;  ///< whose request is there

  Data(Memory& memory, unsigned clients, unsigned slot_count, unsigned lock_count = 1) {
    const auto word = [&](const std::string& name) {
      return Checked::Plain<Word>{memory.add(0, name)};
    };
    for (unsigned l = 0; l < lock_count; ++l)
      count.push_back(word("count of lock " + std::to_string(l)));
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
  CheckedWork(Data& data, unsigned client, Word lock = 0)
      : data_(data), client_(client), lock_(lock) {}

  /// In the middle of each section.
  void pause(std::function<void()> pause) { pause_ = std::move(pause); }

  void run_own(Checked& m) { execute(m, client_, lock_); }
  void put(Checked& m, unsigned slot) {
    m.write(data_.slots.at(slot), (client_ + 1) << lock_bits | lock_);
  }
  void run(Checked& m, unsigned slot) {
    const Word put = m.read(data_.slots.at(slot));
    execute(m, (put >> lock_bits) - 1, put & ((1U << lock_bits) - 1));
  }
  static void posted(Checked&) {}

 private:
  static constexpr unsigned lock_bits = 1;

  void execute(Checked& m, Word client, Word lock) {
    m.thread().check(client < data_.argument.size(), "a slot without a request was executed");
    m.write(data_.count[lock], m.read(data_.count[lock]) + 1);
    const Word number = m.read(data_.argument[client]);
    m.thread().check(m.read(data_.executed[client]) + 1 == number,
                     "a section was executed twice, or not in its turn");
    if (pause_) {
      pause_();
      m.thread().check(m.read(data_.executed[client]) + 1 == number,
                       "a section was executed twice");
    }
    m.write(data_.executed[client], number);
    m.write(data_.result[client], 10 * number + client);
  }

  Data& data_;
  unsigned client_;
  Word lock_;
  std::function<void()> pause_;
};

/// A station's server, for some rounds; it waits for nobody.
template <class M>
struct PassingServer : locks::Walk<M> {
  using locks::Walk<M>::port_;
  locks::Rings<M> rings;
  std::vector<locks::Auto<M>> all;  ///< by number
  Data& data;
  unsigned nobody;  ///< a number that no client has
  Checked::Cell* paused =
      nullptr;  ///< sections give the lock up in between, and say when it's over
  int rounds;

  bool goes_on(bool) { return rounds-- > 0; }
  const locks::Auto<M>& lock(Word number) const { return all[number]; }
  bool take(Word number) const { return all[number].take(port_); }
  /// Keeps the lock after each other client.
  bool execute(Word lock, Word client, const typename locks::Rings<M>::Next& first) const {
    CheckedWork work(data, nobody, lock);
    if (paused != nullptr) work.pause([&] { yield(all[lock]); });
    locks::execute_row(port_, rings, client, first, work, [] { return true; });
    return client % 2 == 0;
  }
  /// As when it waits for a condition.
  void yield(const locks::Auto<M>& lock) const {
    lock.give(port_);
    lock.take_in_turn(port_);
    port_.store(*paused, 1, relaxed);
  }
  static bool has_given() { return true; }
};

/// Whether one thread can leave its ticket to another one here: in words, none of which has bits
/// that are anyhow.
template <class L>
constexpr bool has_heritable_ticket = std::has_unique_object_representations_v<typename L::Ticket>;

/// Whether clients can have the lock without a section that somebody else might execute.
template <class L, class M = Checked>
constexpr bool can_be_acquired = std::is_same_v<L, locks::Auto<M>> ||
                                 requires(const L& lock, M& m, typename L::Ticket& ticket) {
  lock.try_acquire(m, ticket);
};

template <class L, class M = Checked>
constexpr bool has_readers = requires(const L& lock, M& m, typename L::Ticket& ticket) {
  lock.acquire_shared(m, ticket);
};

/// A lock with clients around it, and a server where there is one.
template <class L>
class LockRehearsal {
  using M = Checked;

 public:
  LockRehearsal(const LockScenario& scenario, Tuning& tuning, Memory& memory)
      : scenario_(scenario),
        tuning_(tuning),
        shape_{.clients = scenario.clients, .clusters = 2, .limit = 2},
        layout_(L::layout(shape_)),
        cells_(memory, layout_.global_cells + 3 + scenario.clients, layout_.slots,
               layout_.cells_per_slot),
        data_(memory, scenario.clients, layout_.slots, lock_count()),
        finished_{memory.add(0, "sections that are done")},
        left_{memory.add(0, "the first server, or client 0, has left")} {
    M setup(memory, tuning_);
    const L lock(shape_, cells_);
    if constexpr (requires { lock.prepare(setup); }) lock.prepare(setup);
    if constexpr (has_server_of_its_own) {
      if (scenario.has_server()) lock.start(setup);
    }
    if (scenario.has_successor()) {
      for (std::size_t i = 0; i < ticket_words; ++i) ticket_.push_back({memory.add(0, "ticket")});
    }
    if (scenario.known() == 0) return;
    memory.set_initial(cells_.global(1).location, scenario.known());
    if (scenario_.variant != LockVariant::yields) memory.set_initial(server_cell().location, 1);
  }

  void run(Thread& self) {
    M m(self, tuning_);
    const std::vector<L> locks = make(self.id());
    const L& lock = locks.front();
    if (self.id() == scenario_.clients) return stand_in(m, lock);
    typename L::Ticket ticket = lock.ticket(self.id());
    know(self.id(), ticket);
    // Who has found the lock free and nothing to execute looks again when somebody has it, not any
    // number of times before.
    unsigned lingered = 0;
    if (scenario_.variant == LockVariant::yields) {
      m.set_linger(
          [&] { static_cast<void>(lingered++ == 0 || m.await(left_, equals(1), relaxed)); });
    }
    if (!execute_all(m, self.id(), ticket, 1)) return;
    if constexpr (has_heritable_ticket<L>) {
      if (scenario_.has_successor() && self.id() == 0) leave(m, ticket);
    }
  }

 private:
  static constexpr std::size_t ticket_words = [] {
    if constexpr (has_heritable_ticket<L>) {
      return sizeof(typename L::Ticket) / sizeof(Word);
    } else {
      return std::size_t{0};
    }
  }();
  static constexpr bool has_server_of_its_own = requires(const L& lock, M& m, CheckedWork& work) {
    lock.serve(m, work);
  };

  /// After the lock's cells; those of the participants' own hints follow.
  Checked::Cell& server_cell() { return cells_.global(layout_.global_cells); }

  /// A client's sections, from that number on. False if it gave up.
  bool execute_all(M& m, unsigned client, typename L::Ticket& ticket, Word first) {
    const std::vector<L> locks = make(client);
    if constexpr (has_readers<L>) {
      if (scenario_.reads(client)) return read_all(m, locks.front(), ticket);
    }
    for (Word number = first; number < first + scenario_.sections; ++number) {
      const Word at = (number + client) % lock_count();
      CheckedWork work = work_of(client, at);
      m.write(data_.argument[client], number);
      if (!execute(m, locks[at], client, ticket, work)) return false;
      m.thread().check(m.read(data_.executed[client]) == number, "the section was not executed");
      m.thread().check(m.read(data_.result[client]) == 10 * number + client, "another's result");
      if (scenario_.has_server()) count_out(m, locks.front());
      if (!await_count(m, client, ticket)) return false;
    }
    return true;
  }

  bool execute(M& m, const L& lock, unsigned client, typename L::Ticket& ticket,
               CheckedWork& work) {
    if constexpr (can_be_acquired<L>) {
      if (scenario_.acquires(client)) {
        return acquire_and_execute(m, lock, ticket, work);
      }
    }
    return lock.execute(m, ticket, work);
  }

  /// What delegation/ has for a thread that acquires a lock.
  bool acquire_and_execute(M& m, const L& lock, typename L::Ticket& ticket, CheckedWork& work) {
    if constexpr (std::is_same_v<L, locks::Auto<M>>) {
      if (!lock.take(m) && !lock.take_in_turn(m)) return false;
      work.run_own(m);
      lock.give(m, ticket.habit,
                [&] { lock.give_after_visit(m, ticket.habit, work, [] { return true; }); });
    } else {
      if (!lock.try_acquire(m, ticket) && !lock.acquire(m, ticket)) return false;
      work.run_own(m);
      lock.release(m, ticket);
    }
    return true;
  }

  /// As many sections of a reader, each of which finds the first client's whole.
  bool read_all(M& m, const L& lock, typename L::Ticket& ticket) {
    for (Word number = 0; number < scenario_.sections; ++number) {
      if (!lock.acquire_shared(m, ticket)) return false;
      const Word executed = m.read(data_.executed[0]);
      m.thread().check(m.read(data_.result[0]) == 10 * executed, "half of a section is seen");
      lock.release_shared(m, ticket);
    }
    return true;
  }

  /// The last participant, who is no client.
  void stand_in(M& m, const L& lock) {
    if constexpr (has_heritable_ticket<L>) {
      if (scenario_.has_successor()) return succeed(m, lock);
    }
    serve(m, lock);
  }

  /// Client 0 ends, and gives its seat back;
  void leave(M& m, const typename L::Ticket& ticket) {
    const auto words = std::bit_cast<std::array<Word, ticket_words>>(ticket);
    for (std::size_t i = 0; i < ticket_words; ++i) m.write(ticket_[i], words[i]);
    m.store(left_, 1, release);  // pairs with succeed's await
  }
  /// another thread goes on in it.
  void succeed(M& m, const L& lock) {
    if (!m.await(left_, equals(1), acquire)) return;
    std::array<Word, ticket_words> words;
    for (std::size_t i = 0; i < ticket_words; ++i) words[i] = m.read(ticket_[i]);
    auto ticket = std::bit_cast<typename L::Ticket>(words);
    if (scenario_.variant == LockVariant::stranger) ticket = lock.ticket(0);
    execute_all(m, 0, ticket, 1 + scenario_.sections);
  }

  /// A client that is known from the start has had requests executed by others.
  void know(unsigned client, typename L::Ticket& ticket) const {
    if (client >= scenario_.known()) return;
    if constexpr (requires { ticket.habit; }) {
      ticket.ring.entered = true;
      ticket.habit.set_delegates(true);
    } else if constexpr (requires { ticket.entered; }) {
      ticket.entered = true;
    }
  }

  /// A request of the other lock is executed when the last one is counted, which is after its
  /// answer: hardware looks again and again.
  bool await_count(M& m, unsigned client, const typename L::Ticket& t) {
    if constexpr (std::is_same_v<L, locks::Auto<M>>) {
      const Word counted = locks::Served::least_after(t.ring.posted);
      if (lock_count() > 1) return m.await(cells_.of(client, 1), at_least(counted), relaxed);
    }
    return true;
  }

  unsigned lock_count() const { return scenario_.variant == LockVariant::two ? 2 : 1; }

  std::vector<L> make(unsigned client) {
    if constexpr (std::is_same_v<L, locks::Auto<M>>) {
      if (scenario_.has_server()) {
        return served(client);
      }
    }
    return {L(shape_, cells_)};
  }
  /// Of several clients each gives its hints to itself: what they are good for, the programs
  /// without a server show; here they get lost. Nobody sleeps.
  locks::Wanted<M> hint_of(unsigned participant) const {
    const unsigned own = layout_.global_cells + 2 + participant;
    return {cells_.global(scenario_.clients == 1 ? 2 : own), cells_.global(3)};
  }
  /// A station's locks, as a participant has them.
  std::vector<locks::Auto<M>> served(unsigned participant) {
    std::vector<locks::Auto<M>> all;
    for (Word lock = 0; lock < lock_count(); ++lock) {
      Checked::Cell& held = cells_.global(lock == 0 ? 0 : layout_.global_cells + 1);
      const locks::Desk<M> desk{&held, &cells_.global(1), {1, cells_}, lock};
      all.emplace_back(desk, hint_of(participant), &server_cell());
    }
    return all;
  }
  CheckedWork work_of(unsigned client, Word lock = 0) { return CheckedWork(data_, client, lock); }

  /// After each section: the first one, or the last one, ends a server.
  void count_out(M& m, const L& lock) {
    if constexpr (requires { lock.stop(m); }) {
      const Word before = m.fetch_add(finished_, 1, relaxed);
      const bool last = before + 1 == scenario_.clients * scenario_.sections;
      if (!scenario_.shuts_down()) {
        if (last) lock.stop(m);
        return;
      }
      if (before == 0) lock.stop(m);
    }
  }

  void serve(M& m, const L& lock) {
    if constexpr (has_server_of_its_own) {
      CheckedWork work = work_of(scenario_.clients);
      // Who has found the lock taken looks again when it is free, not any number of times before.
      m.set_linger([&] { m.await(cells_.global(0), equals(0), relaxed); });
      static_cast<void>(lock.serve(m, work));
    } else {
      go_round(m);
    }
  }

  void go_round(M& m) {
    Checked::Cell* const paused = scenario_.variant == LockVariant::yields ? &left_ : nullptr;
    if (scenario_.known() == 0) m.store(server_cell(), 1, relaxed);
    const int rounds = scenario_.clients > 2 ? 1 : 2;
    const locks::Rings<M> rings(1, cells_);
    locks::serve(m, rings,
                 PassingServer<M>{{m, cells_.global(1)},
                                  rings,
                                  served(scenario_.clients),
                                  data_,
                                  scenario_.clients,
                                  paused,
                                  rounds});
    m.store(server_cell(), 0, relaxed);
    if (paused != nullptr) m.store(*paused, 1, relaxed);
  }

  const LockScenario scenario_;
  Tuning& tuning_;
  locks::Shape shape_;
  locks::Layout layout_;
  Checked::Cells cells_;
  Data data_;
  Checked::Cell finished_;
  Checked::Cell left_;
  std::vector<Checked::Plain<Word>> ticket_;  ///< that client 0 has left
};

/// The program for one lock; the tuning must outlive it.
template <class L>
Program rehearse_lock(const LockScenario& scenario, Tuning& tuning) {
  Program program{.name = scenario.name(), .threads = scenario.clients};
  if (scenario.has_server() || scenario.has_successor()) ++program.threads;
  const auto rehearsal = std::make_shared<LockRehearsal<L>>(scenario, tuning, program.memory);
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  return program;
}

}  // namespace muster::check
