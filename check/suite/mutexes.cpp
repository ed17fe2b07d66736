// SPDX-License-Identifier: BSD-3-Clause
#include "check/suite/mutexes.hpp"

#include <map>
#include <memory>

#include "check/checked.hpp"
#include "check/graph.hpp"
#include "check/suite/futex_queue.hpp"
#include "lock/parking_cna.hpp"
#include "lock/parking_queue.hpp"

namespace muster::check {
namespace {

constexpr unsigned globals = 7;

/// Of who is first.
enum Patience : std::uint8_t { endless, any, none };

struct Room {
  Checked::Cells cells;
  std::map<Location, FutexQueue> queues;
  Checked::Plain<Word> memory;  ///< read at each access to the mutex, written by who frees it
  Checked::Plain<Word> count;
  MutexFault fault = MutexFault::none;
  bool stay_awake = false;
  Patience patience = endless;
  bool wakes_for_no_reason = false;
};

/// The checked machine with what lock/parking.hpp asks for beside.
class SleepingPort : public Checked {
 public:
  SleepingPort(Thread& thread, Tuning& tuning, Room& room, bool has_deadline)
      : Checked(thread, tuning),
        room_(room),
        has_deadline_(has_deadline),
        may_wake_(room.wakes_for_no_reason) {}

  template <Order O>
  Word load(const Cell& cell, OrderTag<O> order, Site site = Site::here()) {
    touch(cell, site);
    const Word seen = Checked::load(cell, order, site);
    if (is_word(cell)) see(seen);
    return seen;
  }
  template <Order O>
  void store(Cell& cell, Word word, OrderTag<O> order, Site site = Site::here()) {
    touch(cell, site);
    Checked::store(cell, word, order, site);
  }
  template <Order O>
  Word exchange(Cell& cell, Word word, OrderTag<O> order, Site site = Site::here()) {
    touch(cell, site);
    if (room_.fault == MutexFault::forgets_sleepers && is_front(cell) && word != 0) {
      Word seen = 0;
      if (Checked::compare_exchange(cell, seen, 1, order, site)) return 0;
      Checked::compare_exchange(cell, seen, word, relaxed, site);
      return 1;
    }
    const bool is_turn = room_.queues.contains(cell.location) && !is_front(cell);
    if (room_.stay_awake && is_turn) {
      return thread().exchange(cell.location, word, Ordering::release, site);
    }
    return Checked::exchange(cell, word, order, site);
  }
  template <Order O>
  bool compare_exchange(Cell& cell, Word& expected, Word desired, OrderTag<O> order,
                        Site site = Site::here()) {
    touch(cell, site);
    if (room_.fault == MutexFault::drops_claims && (desired & taken) == 0 && is_word(cell)) {
      desired = 0;
    }
    const bool done = Checked::compare_exchange(cell, expected, desired, order, site);
    if (is_word(cell)) {
      see(expected);
      if (done && (desired & claimed) == 0) has_claim_ = false;
      if (done && (desired & claimed & ~expected) != 0) has_claim_ = true;
    }
    return done;
  }

  /// Those that stay awake are called in order, whatever is weakened: they see little that is old,
  /// and have few executions. What else there is is for those that sleep to show.
  template <class Pred>
  bool poll(Cell& cell, Pred pred, Site site = Site::here()) {
    if (!room_.stay_awake) return pred(load(cell, relaxed, site));
    thread().await(cell.location, Predicate(pred), Ordering::acquire, site);
    return true;
  }

  bool is_overdue(Site site = Site::here()) {
    return room_.patience == none || (room_.patience == any && thread().choose(2, site) != 0);
  }

  bool park(Cell& cell, Word seen, Site site = Site::here()) {
    touch(cell, site);
    if (room_.stay_awake) return poll(cell, Differs{seen}, site);
    if (may_wake_ && thread().choose(2, site) != 0) {
      may_wake_ = false;
      return true;
    }
    const FutexQueue& queue = room_.queues.at(cell.location);
    const auto changed = [&] {
      const bool differs = Checked::load(cell, relaxed, site) != seen;
      return differs && room_.fault != MutexFault::sleeps_blindly;
    };
    if (!queue.fall_asleep(thread(), changed, site)) return true;
    if (has_deadline_ && thread().choose(2, site) != 0 && queue.get_up(thread(), site)) {
      return false;
    }
    thread().await(queue.wakeups(thread().id()), Predicate(equals(++wakeups_[cell.location])),
                   Ordering::acquire, site);
    return true;
  }

  void unpark(Cell& cell, Site site = Site::here()) {
    if (room_.fault == MutexFault::wakes_nobody) return;
    if (room_.fault == MutexFault::touches_late) load(cell, relaxed, site);
    room_.queues.at(cell.location).wake_one(thread(), site);
  }

 private:
  // As lock/parking.hpp has them.
  static constexpr Word taken = 1;
  static constexpr Word claimed = 4;

  bool is_word(const Cell& cell) const { return cell.location == room_.cells.global(0).location; }
  bool is_front(const Cell& cell) const { return cell.location == room_.cells.global(1).location; }
  /// Until who has claimed the word takes it, the claim stands there.
  void see(Word word) {
    thread().check(!has_claim_ || (word & claimed) != 0, "it was passed over after its claim");
  }
  void touch(const Cell& cell, Site site) {
    for (unsigned i = 0; i < globals; ++i) {
      if (cell.location == room_.cells.global(i).location) read(room_.memory, site);
    }
  }

  Room& room_;
  bool has_deadline_;
  bool may_wake_;
  bool has_claim_ = false;
  std::map<Location, Word> wakeups_;
};

constexpr Word mark_of_parent = 0x10000;
constexpr Word mark_of_child = 0x20000;

template <class L>
class MutexRehearsal {
 public:
  MutexRehearsal(const MutexScenario& scenario, Tuning& tuning, Memory& memory, MutexFault fault)
      : scenario_(scenario),
        tuning_(tuning),
        shape_{.clients = scenario.participants,
               .clusters = 1,
               .limit = scenario.participants > 4 ? 2U : 1U} {  // to set aside twice takes five
    const locks::Layout layout = L::layout(shape_);
    room_.cells = {memory, globals, scenario.participants + 1, layout.cells_per_slot};
    room_.fault = fault;
    add_queue(memory, room_.cells.global(0));
    add_queue(memory, room_.cells.global(1));
    for (unsigned c = 0; c <= scenario.participants && layout.slots != 0; ++c) {
      add_queue(memory, room_.cells.of(c, 2));
    }
    room_.memory = {memory.add(0, "the mutex's memory")};
    room_.count = {memory.add(0, "sections")};
    if (is_forked()) {
      memory.set_initial(room_.cells.global(0).location, mark_of_parent | 4);  // claimed
      memory.set_initial(room_.cells.global(1).location, mark_of_parent | 2);  // slept on
      memory.set_initial(room_.cells.global(2).location, mark_of_parent | 1);
      memory.set_initial(room_.cells.global(3).location, mark_of_parent | 2);
      memory.set_initial(room_.cells.global(4).location, 1);
    }
    if (holds_it()) memory.set_initial(room_.cells.global(0).location, 1);
    if (scenario.variant == MutexVariant::front) {
      memory.set_initial(room_.cells.global(1).location, 1);  // the first participant's
    }
    room_.stay_awake = scenario.variant == MutexVariant::awake;
    const bool few = scenario.participants == 2;
    if (scenario.variant == MutexVariant::passed) room_.patience = few ? any : none;
    if (scenario.variant == MutexVariant::timed && few) room_.patience = any;
    room_.wakes_for_no_reason = scenario.variant == MutexVariant::woken;
    queue_all(memory);
  }

  const char* wrong_at_end(const Graph& graph) const {
    const bool is_free = graph.newest_value(room_.cells.global(0).location) == 0;
    return is_free ? nullptr : "something is left in the word, and nobody is there";
  }

  void run(Thread& self) {
    const bool last = self.id() + 1 == scenario_.participants;
    const bool timed = last && scenario_.variant == MutexVariant::timed;
    SleepingPort m(self, tuning_, room_, timed);
    const Word mark = is_forked() ? mark_of_child : 0;
    const locks::ParkingWord<SleepingPort> word(shape_, room_.cells, mark);
    const L lock = lock_with(mark);
    if (scenario_.variant == MutexVariant::front) {
      const locks::ParkingFront<SleepingPort> front(room_.cells, mark);
      if (self.id() != 0) front.come(m);
      if (front.leave(m)) front.wake(m);
      return;
    }
    auto ticket = lock.ticket(self.id());
    if constexpr (requires { ticket.mark; }) ticket.mark = mark;
    const unsigned sections = self.id() == 0 ? scenario_.sections : 1;
    for (unsigned section = 0; section < sections; ++section) {
      if (section == 0 && self.id() < queued()) {
        go_on(m, lock, ticket);
      } else if (section == 0 && self.id() == 0 && holds_it()) {
        // There it is.
      } else if (timed) {
        if (!word.acquire(m)) return;
      } else if (last && scenario_.variant == MutexVariant::tries) {
        if (!word.try_acquire(m)) return;
      } else if (last && scenario_.variant == MutexVariant::left) {
        if (!word.try_acquire(m) && !word.try_acquire_left(m)) return;
      } else {
        acquire(m, lock, ticket);
      }
      const Word count = m.read(room_.count) + 1;
      m.write(room_.count, count);
      word.release(m);
      if (scenario_.variant != MutexVariant::freed) continue;
      if (count == scenario_.participants - 1 + scenario_.sections) m.write(room_.memory, Word{1});
    }
  }

 private:
  bool is_forked() const {
    return scenario_.variant == MutexVariant::forked || scenario_.variant == MutexVariant::left;
  }
  L lock_with([[maybe_unused]] Word mark) const {
    if constexpr (requires { L(shape_, room_.cells, mark); }) {
      return L(shape_, room_.cells, mark);
    } else {
      return L(shape_, room_.cells);
    }
  }
  /// The first participant has the word: of three, others come while it does.
  bool holds_it() const {
    return scenario_.variant == MutexVariant::passed && scenario_.participants > 2;
  }
  unsigned queued() const {
    if (scenario_.variant == MutexVariant::queued) return scenario_.participants;
    return scenario_.variant == MutexVariant::awake ? scenario_.participants - 1 : 0;
  }
  /// As if each of them had joined, and not looked yet.
  void queue_all(Memory& memory) {
    const L lock(shape_, room_.cells);
    for (unsigned p = 0; p < queued(); ++p) {
      if constexpr (requires { lock.ticket(p).numa; }) {
        const auto ticket = lock.ticket(p);
        const Word next = p + 1 == queued() ? 0 : ticket.client + 1;
        memory.set_initial(lock.link(ticket.client).location, next);
        memory.set_initial(lock.numa(ticket.client).location, ticket.numa);
        memory.set_initial(room_.cells.of(ticket.client, 2).location, 1);
        memory.set_initial(room_.cells.global(2).location, ticket.client);
      }
    }
  }
  template <class T>
  void acquire(SleepingPort& m, const L& lock, T& ticket) {
    if constexpr (requires { lock.acquire_in_line(m, ticket); }) {
      if (scenario_.variant == MutexVariant::awake) {
        lock.acquire_in_line(m, ticket);
        return;
      }
    }
    m.thread().check(lock.acquire(m, ticket), "it gave up");
  }
  template <class T>
  void go_on(SleepingPort& m, const L& lock, const T& ticket) {
    if constexpr (requires { lock.acquire_called(m, ticket); }) {
      if (m.thread().id() != 0) lock.await_call(m, ticket);
      lock.acquire_called(m, ticket);
    }
  }

  void add_queue(Memory& memory, const Checked::Cell& cell) {
    room_.queues[cell.location] = {memory, cell.location, scenario_.participants};
  }

  const MutexScenario scenario_;
  Tuning& tuning_;
  locks::Shape shape_;
  Room room_;
};

using Mutexes = std::tuple<locks::ParkingWord<SleepingPort>, locks::ParkingMcs<SleepingPort>,
                           locks::ParkingCna<SleepingPort>>;

/// Calls `fn` with each of them.
template <class Fn>
void for_each_mutex(Fn&& fn) {
  [&]<class... L>(std::tuple<L...>*) {
    (fn.template operator()<L>(), ...);
  }(static_cast<Mutexes*>(nullptr));
}

}  // namespace

const char* variant_name(MutexVariant variant) {
  constexpr const char* names[] = {"plain",  "timed", "tries", "freed",  "forked", "left",
                                   "queued", "awake", "woken", "passed", "front"};
  return names[static_cast<int>(variant)];
}

std::string MutexScenario::name() const {
  std::string text = mutex + ", " + std::to_string(participants) + " participants, " +
                     std::to_string(sections) + (sections == 1 ? " section" : " sections");
  if (variant != MutexVariant::plain) text += std::string(", ") + variant_name(variant);
  return text;
}

Program make_mutex_program(const MutexScenario& scenario, Tuning& tuning, MutexFault fault) {
  Program program{.name = scenario.name(), .threads = scenario.participants};
  for_each_mutex([&]<class L>() {
    if (scenario.mutex != L::traits.name) return;
    const auto rehearsal =
        std::make_shared<MutexRehearsal<L>>(scenario, tuning, program.memory, fault);
    program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
    program.at_end = [rehearsal](const Graph& graph) { return rehearsal->wrong_at_end(graph); };
  });
  if (program.body) return program;
  std::string message = "no mutex \"" + scenario.mutex + "\"; there are:";
  for (const std::string& known : checked_mutexes()) message += " " + known;
  throw Error(Status::unknown_name, message);
}

std::vector<std::string> checked_mutexes() {
  std::vector<std::string> names;
  for_each_mutex([&]<class L>() { names.emplace_back(L::traits.name); });
  return names;
}

std::vector<MutexScenario> mutex_scenarios(const std::string& mutex) {
  std::vector<MutexScenario> all = {
      {mutex, 2, 1, MutexVariant::plain}, {mutex, 2, 1, MutexVariant::forked},
      {mutex, 2, 1, MutexVariant::left},  {mutex, 2, 2, MutexVariant::passed},
      {mutex, 2, 1, MutexVariant::freed}, {mutex, 2, 1, MutexVariant::tries},
      {mutex, 2, 1, MutexVariant::timed}, {mutex, 2, 1, MutexVariant::woken},
      {mutex, 2, 2, MutexVariant::plain}, {mutex, 2, 2, MutexVariant::woken}};
  if (mutex != locks::ParkingWord<SleepingPort>::traits.name) {
    all.push_back({mutex, 3, 1, MutexVariant::awake});
    all.push_back({mutex, 4, 1, MutexVariant::awake});
    all.push_back({mutex, 5, 1, MutexVariant::awake});
    all.push_back({mutex, 3, 2, MutexVariant::awake});
    all.push_back({mutex, 3, 1, MutexVariant::queued});
  } else {
    all.push_back({mutex, 3, 1, MutexVariant::front});
  }
  all.push_back({mutex, 3, 1, MutexVariant::plain});
  all.push_back({mutex, 3, 1, MutexVariant::passed});
  all.push_back({mutex, 3, 1, MutexVariant::timed});
  return all;
}

std::vector<Rehearsed> mutation_programs_of_mutexes() {
  std::vector<Rehearsed> all;
  const auto add = [&](const MutexScenario& scenario) {
    all.push_back({scenario.name(),
                   [scenario](Tuning& tuning) { return make_mutex_program(scenario, tuning); }});
  };
  for (const MutexScenario& scenario : mutex_scenarios("cna")) {  // which has the text of all
    // Three that sleep have hundreds of thousands of executions when an order is missing, and show
    // no more than the cheaper ones.
    if (scenario.participants > 2 && scenario.variant != MutexVariant::awake) continue;
    if (scenario.variant == MutexVariant::woken) continue;
    add(scenario);
  }
  // Who is at the front, and others that want to be.
  add({"spin-then-park", 3, 1, MutexVariant::front});
  add({"spin-then-park", 3, 1, MutexVariant::timed});
  return all;
}

std::vector<HandWritten> hand_written_mutexes() {
  const struct {
    const char* name;
    MutexFault fault;
  } faults[] = {{"mutex: a wake-up forgotten", MutexFault::wakes_nobody},
                {"mutex: to sleep without another look", MutexFault::sleeps_blindly},
                {"mutex: other sleepers forgotten", MutexFault::forgets_sleepers},
                {"mutex: a look after it was given", MutexFault::touches_late},
                {"mutex: a claim dropped", MutexFault::drops_claims}};
  std::vector<HandWritten> all;
  for (const auto& [name, fault] : faults) {
    HandWritten made{name, {}};
    const auto add = [&made, f = fault](const MutexScenario& scenario) {
      made.programs.push_back({scenario.name(), [scenario, f](Tuning& tuning) {
                                 return make_mutex_program(scenario, tuning, f);
                               }});
    };
    for (const std::string& mutex : checked_mutexes()) {
      for (const MutexScenario& scenario : mutex_scenarios(mutex)) {
        // Two show all that three do, and sooner.
        if (scenario.participants > 2 && scenario.variant == MutexVariant::passed) continue;
        add(scenario);
      }
    }
    all.push_back(std::move(made));
  }
  return all;
}

}  // namespace muster::check
