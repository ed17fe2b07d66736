// SPDX-License-Identifier: BSD-3-Clause
// The programs around lock/condition.hpp: participants wait inside sections of a lock, for ever if
// nobody signals, and the last one signals. What a waiter is woken by is gone as soon as it
// returns, and the condition when nobody is left. Mutants are compiled with a copy of this.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "check/checked.hpp"
#include "check/suite/exclusion.hpp"
#include "check/suite/lock_scenario.hpp"
#include "lock/condition.hpp"
#include "lock/shape.hpp"

namespace muster::check {

/// The machine: a participant's port.
class Waiting : public Checked {
 public:
  struct Mutex : TicketMutex {
    Checked::Plain<Word> memory;  ///< the condition's
  };
  struct Signal {
    Cell called;
    Checked::Plain<Word> memory;  ///< its waiter's
  };
  /// A bool, or a waiter: its number and 1.
  template <class T>
  struct Plain {
    Location location;
  };
  using Waiter = locks::Condition<Waiting>::Waiter;
  using Waiters = std::vector<std::unique_ptr<Waiter>>;

  Waiting(Thread& thread, Tuning& tuning, const Waiters& waiters, bool is_timed)
      : Checked(thread, tuning), waiters_(waiters), is_timed_(is_timed) {}

  template <class Body>
  auto within(Mutex& mutex, Body body) {
    lock(mutex);
    return then_leave(body, [&] { unlock(mutex); });
  }
  bool wait_until(Signal& signal, Mutex& mutex, bool has_end) {
    const Word called = thread().load(signal.called.location, Ordering::acquire);
    unlock(mutex);
    const bool is_over = has_end && is_timed_ && thread().choose(2) != 0;
    if (!is_over) {
      thread().await(signal.called.location, Predicate(at_least(called + 1)), Ordering::acquire);
    }
    lock(mutex);
    return !is_over;
  }
  void call_one(Signal& signal) {
    Checked::read(signal.memory);
    thread().fetch_add(signal.called.location, 1, Ordering::release);
  }
  template <class T>
  T read(const Plain<T>& plain) {
    const Word word = thread().read(plain.location);
    if constexpr (std::is_pointer_v<T>) {
      return word == 0 ? nullptr : waiters_[word - 1].get();
    } else {
      return word != 0;
    }
  }
  template <class T>
  void write(Plain<T>& plain, std::type_identity_t<T> value) {
    Word word = 0;
    if constexpr (std::is_pointer_v<T>) {
      while (value != nullptr && waiters_[word++].get() != value) {
      }
    } else {
      word = value ? 1 : 0;
    }
    thread().write(plain.location, word);
  }

 private:
  void lock(Mutex& mutex) { turn_ = mutex.lock(thread()); }
  void unlock(Mutex& mutex) {
    Checked::read(mutex.memory);
    mutex.unlock(thread(), turn_);
  }

  const Waiters& waiters_;
  bool is_timed_;
  Word turn_ = 0;  ///< of the mutex
};

/// `L`: over Checked, acquired and released.
template <class L>
class ConditionRehearsal {
  using M = Waiting;

 public:
  ConditionRehearsal(const LockScenario& scenario, Tuning& tuning, Memory& memory)
      : waiters_(scenario.clients - 1),
        variant_(scenario.variant),
        tuning_(tuning),
        shape_{.clients = scenario.clients},
        items_{memory.add(0, "items")},
        waited_{memory.add(0, "waits begun")},
        signals_{memory.add(0, "signals")},
        left_{memory.add(0, "waiters that have left")},
        memory_{memory.add(0, "the condition's memory")} {
    const locks::Layout layout = L::layout(shape_);
    cells_ = {memory, layout.global_cells, layout.slots, layout.cells_per_slot};
    const auto word = [&](const std::string& name) { return memory.add(0, name); };
    condition_.mutex = {{{word("mutex")}, {word("turn")}}, memory_};
    condition_.first = {word("first")};
    condition_.last = {word("last")};
    for (unsigned i = 0; i < waits_max * waiters_; ++i) {
      const std::string of = " of wait " + std::to_string(i);
      all_.push_back(
          std::make_unique<M::Waiter>(M::Waiter{{{word("called" + of)}, {word("memory" + of)}},
                                                {word("next" + of)},
                                                {word("listed" + of)}}));
    }
  }

  void run(Thread& self) {
    const bool is_timed = variant_ == LockVariant::expires && self.id() == 1;
    M m(self, tuning_, all_, is_timed);
    const L lock(shape_, cells_);
    auto ticket = lock.ticket(self.id());
    Section section{m, lock, ticket};
    if (self.id() == waiters_) {
      signal(m, section);
    } else {
      section.begin();
      wait(m, section);
      section.end();
    }
  }

 private:
  static constexpr unsigned waits_max = 2;

  struct Section {
    M& m;
    const L& lock;
    typename L::Ticket& ticket;
    void begin() { m.thread().check(lock.acquire(m, ticket), "it gave up"); }
    void end() { lock.release(m, ticket); }
  };

  void wait(M& m, Section& section) {
    const unsigned id = m.thread().id();
    for (unsigned i = 0; get(m, items_) == 0; ++i) {
      m.thread().check(i < waits_max, "it was signalled again and again");
      M::Waiter& self = *all_[waits_max * id + i];
      const Word turn = get(m, waited_);
      set(m, waited_, turn + 1);
      const bool is_signalled = condition_.wait(m, self, true, [&](auto body) {
        section.end();
        body();
        section.begin();
      });
      set(m, self.woken.memory, 1);  // what was there is gone
      m.write(self.waits, true);
      m.write(self.next, &self);
      if (!is_signalled) return;
      const bool in_turn = turn < get(m, signals_) || variant_ != LockVariant::signals;
      m.thread().check(in_turn, "one signal has released two, or not the first");
    }
    // Who is served leaves the item to the other, whose time may not be over.
    if (variant_ == LockVariant::expires) return condition_.signal(m, false);
    if (variant_ == LockVariant::signals) set(m, items_, get(m, items_) - 1);
    set(m, left_, get(m, left_) + 1);
    // The signaller's last call may still be under way, but has released this one.
    if (variant_ == LockVariant::broadcasts && get(m, left_) == waiters_) set(m, memory_, 1);
  }
  void signal(M& m, Section& section) {
    const unsigned signals = variant_ == LockVariant::signals ? waiters_ : 1;
    for (unsigned i = 0; i < signals; ++i) {
      section.begin();
      set(m, items_, get(m, items_) + 1);
      set(m, signals_, i + 1);
      const bool inside = variant_ == LockVariant::broadcasts || i == 0;
      const bool all = variant_ == LockVariant::broadcasts;
      if (inside) condition_.signal(m, all);
      section.end();
      if (!inside) condition_.signal(m, all);
    }
  }

  static Word get(M& m, const Checked::Plain<Word>& word) {
    return static_cast<Checked&>(m).read(word);
  }
  static void set(M& m, Checked::Plain<Word>& word, Word value) {
    static_cast<Checked&>(m).write(word, value);
  }

  const unsigned waiters_;
  const LockVariant variant_;
  Tuning& tuning_;
  locks::Shape shape_;
  Checked::Cells cells_;
  Checked::Plain<Word> items_;
  Checked::Plain<Word> waited_;
  Checked::Plain<Word> signals_;
  Checked::Plain<Word> left_;
  Checked::Plain<Word> memory_;
  locks::Condition<M> condition_;
  M::Waiters all_;
};

template <class L>
Program rehearse_condition(const LockScenario& scenario, Tuning& tuning) {
  Program program{.name = scenario.name(), .threads = scenario.clients};
  const auto rehearsal = std::make_shared<ConditionRehearsal<L>>(scenario, tuning, program.memory);
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  return program;
}

}  // namespace muster::check
