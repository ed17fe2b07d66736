// SPDX-License-Identifier: BSD-3-Clause
// The program around lock/numbers.hpp: a lock ends when others have posted to it, and the next one
// gets its number. Executors go round; one of them may have looked at a request of the lock before.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "check/graph.hpp"
#include "check/suite/exclusion.hpp"
#include "check/suite/station.hpp"
#include "lock/numbers.hpp"

namespace muster::check {
namespace {

class Owner : public Checked {
 public:
  using Mutex = TicketMutex;

  Owner(Thread& thread, Tuning& tuning, NumbersFault fault, const Cell& held)
      : Checked(thread, tuning), fault_(fault), held_(held.location) {}

  template <class Body>
  auto within(Mutex& mutex, Body body) {
    const bool excludes = fault_ != NumbersFault::no_mutex;
    const Word turn = excludes ? mutex.lock(thread()) : 0;
    return then_leave(body, [&] {
      if (excludes) mutex.unlock(thread(), turn);
    });
  }

  template <Order O>
  Word load(const Cell& cell, OrderTag<O> order, Site site = Site::here()) {
    const bool is_held = cell.location == held_;
    if (fault_ == (is_held ? NumbersFault::held_unseen : NumbersFault::pending_unseen)) return 0;
    looked_at_ = cell.location;
    seen_ = Checked::load(cell, order, site);
    return seen_;
  }
  /// Between two looks, which are at the same cell.
  void linger(unsigned) {
    thread().await(looked_at_, Predicate(Differs{seen_}), Ordering::relaxed);
  }

 private:
  NumbersFault fault_;
  Location held_;
  Location looked_at_{};
  Word seen_ = 0;
};

/// The primitives of who is no owner: not to be weakened.
struct Other {
  Thread& thread;

  Word look(const Checked::Cell& cell) { return thread.load(cell.location, Ordering::acquire); }
  void say(const Checked::Cell& cell, Word word) {
    thread.store(cell.location, word, Ordering::release);
  }
  template <class Pred>
  void until(const Checked::Cell& cell, Pred pred) {
    thread.await(cell.location, Predicate(pred), Ordering::acquire);
  }
  bool take(const Checked::Cell& held) {
    return thread.compare_exchange(held.location, 0, 1, Ordering::acquire) == 0;
  }
};

class NumbersRehearsal {
 public:
  NumbersRehearsal(const LockScenario& scenario, NumbersFault fault, Tuning& tuning, Memory& memory)
      : owners_(scenario.variant == LockVariant::owners ? scenario.clients : 1),
        clients_(scenario.variant == LockVariant::owners ? 0 : scenario.clients),
        executors_(scenario.variant == LockVariant::owners ? 0 : scenario.sections),
        fault_(fault),
        tuning_(tuning),
        numbers_{{word(memory, "mutex"), word(memory, "turn")},
                 {memory.add(0, "given back last")},
                 {memory.add(0, "fresh")}},
        posted_(word(memory, "posted")),
        made_(word(memory, "locks made")),
        executed_(word(memory, "executed")) {
    for (unsigned number = 0; number < std::max(owners_, 2U); ++number) {
      const std::string name = " of number " + std::to_string(number);
      rows_.push_back({word(memory, "held" + name),
                       word(memory, "wanted" + name),
                       {memory.add(0, "next" + name)},
                       word(memory, "dozing" + name)});
      lock_of_.push_back({memory.add(0, "lock" + name)});
    }
    for (const char* const name : {"lock 1", "lock 2"}) lock_.push_back({memory.add(0, name)});
    for (unsigned client = 0; client < clients_; ++client) {
      entries_.push_back(word(memory, "request of client " + std::to_string(client)));
    }
  }

  unsigned participants() const { return owners_ + clients_ + executors_; }

  void run(Thread& self) {
    Owner owner(self, tuning_, fault_, rows_[0].held);
    Other other{self};
    if (self.id() < owners_) {
      if (owners_ == 1) return own(owner, other);
      own_one_each(owner);
    } else if (self.id() < owners_ + clients_) {
      post(other, self.id() - owners_);
    } else {
      execute_all(owner, other);
    }
  }

  const char* at_end(const Graph& graph) const {
    const bool all = owners_ > 1 || graph.newest_value(executed_.location) == clients_ + 1;
    return all ? nullptr : "a request was left over, or executed twice";
  }

 private:
  using Rings = locks::Rings<Owner>;

  static Checked::Cell word(Memory& memory, const std::string& name) {
    return {memory.add(0, name)};
  }

  Word add(Owner& m, Word lock) {
    const Word number = numbers_.add(
        m, [&](Word known) -> auto& { return rows_[known]; });
    m.write(lock_of_[number], lock);
    return number;
  }
  void remove(Owner& m, Word number) {
    numbers_.remove(m, number, rows_[number], [&](auto look) {
      for (const Checked::Cell& entry : entries_) look(entry);
    });
  }

  /// Lock 1 has requests and ends; lock 2 gets its number, and has one.
  void own(Owner& m, Other& other) {
    const Word number = add(m, 1);
    other.say(made_, 1);
    other.until(posted_, equals(clients_));
    remove(m, number);
    m.write(lock_[0], Word(1));  // another one's, now
    m.thread().check(add(m, 2) == number, "a number is lost");
    other.say(made_, 2);
  }
  /// Owners have a lock each, and then another one.
  void own_one_each(Owner& m) {
    const Word lock = m.thread().id() + 1;
    const Word number = add(m, lock);
    m.thread().check(m.read(lock_of_[number]) == lock, "two locks have one number");
    remove(m, number);
    m.thread().check(m.read(lock_of_[add(m, lock)]) == lock, "two locks have one number");
  }

  void post(Other& m, unsigned client) {
    m.until(made_, at_least(1));
    m.say(entries_[client], Rings::request(1, 0));
    m.thread.fetch_add(posted_.location, 1, Ordering::acq_rel);
    if (client != 0) return;
    m.until(made_, equals(2));
    m.say(entries_[client], Rings::request(2, 0));
  }

  /// What is posted is executed with the lock of that number; its memory is the lock's until that
  /// is given back.
  void execute_all(Owner& data, Other& m) {
    for (;;) {
      std::vector<Awaitable> any{awaitable(executed_, at_least(clients_ + 1))};
      for (const Checked::Cell& entry : entries_) any.push_back(awaitable(entry, at_least(1)));
      const std::size_t found = m.thread.await_first(any);
      if (found == 0) return;
      const Checked::Cell& entry = entries_[found - 1];
      const Checked::Cell& held = rows_[0].held;
      if (!m.take(held)) {
        m.until(held, equals(0));
        continue;
      }
      if (const Word request = m.look(entry); request != 0) {
        const Word lock = data.read(lock_of_[0]);
        m.thread.check(lock == Rings::number_of(request), "it was a request of another lock");
        m.say(entry, 0);
        m.thread.fetch_add(executed_.location, 1, Ordering::relaxed);
        data.read(lock_[lock - 1]);
      }
      m.say(held, 0);
    }
  }
  template <class Pred>
  static Awaitable awaitable(const Checked::Cell& cell, Pred pred) {
    return {cell.location, Predicate(pred), Ordering::acquire, Site::here()};
  }

  const unsigned owners_;
  const unsigned clients_;
  const unsigned executors_;
  const NumbersFault fault_;
  Tuning& tuning_;
  locks::Numbers<Owner> numbers_;
  Checked::Cell posted_;
  Checked::Cell made_;
  Checked::Cell executed_;
  std::vector<locks::Numbers<Owner>::Row> rows_;
  std::vector<Checked::Plain<Word>> lock_of_;  ///< whose number it is
  std::vector<Checked::Plain<Word>> lock_;     ///< its memory
  std::vector<Checked::Cell> entries_;
};

}  // namespace

Program rehearse_numbers(const LockScenario& scenario, Tuning& tuning, NumbersFault fault) {
  Program program{.name = scenario.name()};
  const auto rehearsal =
      std::make_shared<NumbersRehearsal>(scenario, fault, tuning, program.memory);
  program.threads = rehearsal->participants();
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  program.at_end = [rehearsal](const Graph& graph) { return rehearsal->at_end(graph); };
  return program;
}

}  // namespace muster::check
