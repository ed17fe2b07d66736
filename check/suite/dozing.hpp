// SPDX-License-Identifier: BSD-3-Clause
// The program around lock/doze.hpp: clients of an `auto` lock, which sleep until they are woken,
// and for ever if nobody wakes them. Mutants are compiled with a copy of this.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "check/begin.hpp"
#include "check/checked.hpp"
#include "check/suite/departure.hpp"
#include "check/suite/lock_rehearsal.hpp"
#include "check/suite/lot.hpp"
#include "lock/ask.hpp"
#include "lock/auto.hpp"
#include "muster/section.hpp"
#include "wait/sleep.hpp"

namespace muster::check {

/// What clients sleep on: their requests' entries, and `dozing`. Three announce themselves each in
/// words of its own, where whoever stores to its entry looks: in common ones the order of all that
/// go to sleep would multiply the executions.
struct Bedroom {
  struct Bed {
    Checked::Cell sleepers;
    Checked::Cell queue;
    unsigned owner;  ///< who sleeps there, if it is an entry
  };
  std::vector<Announcements<Checked::Cell>> all;
  std::map<Location, Bed> beds;

  Bedroom(Memory& memory, unsigned clients) {
    for (unsigned n = clients > 2 ? clients : 1; n > 0; --n) {
      all.push_back({{memory.add(0, "sleepers")},
                     {memory.add(0, "sleepers on the bell")},
                     {memory.add(0, "bell")}});
    }
  }
  void add(Memory& memory, const Checked::Cell& cell, unsigned owner) {
    const std::string name = memory.name(cell.location);
    beds[cell.location] = {
        {memory.add(0, "sleepers on " + name)}, {memory.add(0, "queue of " + name)}, owner};
  }
  Announcements<Checked::Cell>& announcements(unsigned client) { return all[client % all.size()]; }
};

/// The primitives of wait/sleep.hpp. As under the kernel's lock, who parks sees what was stored
/// before the wake-ups that came before; and as there, who has parked first is woken first.
struct DozingLot : Lot {
  Bedroom& room;

  template <Order O>
  Word make_odd(const Checked::Cell& cell, OrderTag<O>, Site site = Site::here()) {
    return thread.fetch_or(cell.location, 1, tuning.order_at(site, "fetch_or", ordering(O)), site) |
           1;
  }
  void take(const Checked::Cell& cell, Word from, Word to, Site site = Site::here()) {
    const Ordering order = tuning.order_at(site, "compare_exchange", Ordering::acq_rel);
    thread.compare_exchange(cell.location, from, to, order, site);
  }
  void set(const Checked::Cell& cell, Word word, Site site = Site::here()) {
    thread.store(cell.location, word, tuning.order_at(site, "store", Ordering::relaxed), site);
  }
  Word look(const Checked::Cell& cell, Site site = Site::here()) {
    return thread.load(cell.location, tuning.order_at(site, "load", Ordering::acquire), site);
  }
  void park(const Checked::Cell& cell, Word value) {
    const Location queue = queue_of(cell);
    Word at = 0;
    do {
      at = thread.load(queue, Ordering::acquire);
      if (peek(cell) != value) return;
    } while (thread.compare_exchange(queue, at, at + parked, Ordering::acq_rel) != at);
    thread.await(queue, Predicate(Woken{at & mask}), Ordering::acquire);
  }
  void unpark_all(const Checked::Cell& cell) { unpark(cell, mask); }
  void unpark_one(const Checked::Cell& cell) { unpark(cell, 1); }

 private:
  // What is in a queue: how many have parked, how many of them are woken, the first ones, and how
  // often somebody woke any.
  static constexpr Word mask = 255;
  static constexpr Word parked = 1;
  static constexpr Word woken = 256;
  static constexpr Word turn = 65'536;
  struct Woken {
    Word before;
    bool operator()(Word at) const { return (at / woken & mask) > before; }
  };

  Location queue_of(const Checked::Cell& cell) const {
    return room.beds.at(cell.location).queue.location;
  }
  void unpark(const Checked::Cell& cell, Word most) {
    const Location queue = queue_of(cell);
    Word at = thread.load(queue, Ordering::acquire);
    for (;;) {
      const Word asleep = (at & mask) - (at / woken & mask);
      const Word next = at + turn + std::min(most, asleep) * woken;
      const Word seen = thread.compare_exchange(queue, at, next, Ordering::acq_rel);
      if (seen == at) return;
      at = seen;
    }
  }
};

/// The checked machine, on which who waits for a lock sleeps at once.
class Dozing : public Checked {
 public:
  Dozing(Thread& thread, Tuning& tuning, Bedroom& room)
      : Checked(thread, tuning), lot_{{thread, tuning}, room}, room_(room) {}

  template <class Pred, Order O>
  bool await_all(CellSet<Dozing> cells, Pred pred, OrderTag<O> order, Site site = Site::here()) {
    return Checked::await_all(cells, pred, order, site);
  }
  template <class Pred, Order O>
  std::size_t await_any(CellSet<Dozing> cells, Pred pred, OrderTag<O> order, std::size_t from = 0,
                        Site site = Site::here()) {
    return Checked::await_any(cells, pred, order, from, site);
  }
  template <Order O>
  void store(Cell& cell, Word word, OrderTag<O> order, Site site = Site::here()) {
    Checked::store(cell, word, order, site);
    const auto bed = room_.beds.find(cell.location);
    if (bed == room_.beds.end()) return;
    Bedroom::Bed& here = bed->second;
    wake_sleepers(lot_, room_.announcements(here.owner), cell, here.sleepers);
  }

  int await_either(Cell& own, Cell& server, OrderTag<Order::acquire>, Awaited,
                   Site = Site::here()) {
    return locks::await_answer(lot_, room_.announcements(thread().id()), bed(own), server,
                               [](Word) { return WaitStep::sleep; });
  }
  int await_either(Cell& own, Cell& held, OrderTag<Order::acquire>, Cell& wanted, Cell& dozing,
                   const Expectation<Cell>& expected) {
    return ask(&own, held, wanted, dozing, expected);
  }
  bool wait_for_turn(Cell& held, Cell& wanted, Cell& dozing, unsigned) {
    return ask(nullptr, held, wanted, dozing, {.soon = false, .answer = false}) == 1;
  }
  bool is_slept_on(const Cell& dozing) { return lot_.peek(sleepers(dozing)) != 0; }
  void clear_wanted(Cell& wanted, const Cell& dozing) {
    Doze::clear_wanted(lot_, wanted, sleepers(dozing));
  }
  bool is_dozing(const Cell& dozing) { return Doze::is_dozing(lot_, dozing); }
  bool take_note(const Cell& dozing) { return Doze::take_note(lot_, dozing); }
  void set_dozing(const Cell& dozing) { Doze::set_dozing(lot_, dozing); }
  void rouse(Cell& entry, Word request) { Doze::rouse(lot_, entry, sleepers(entry), request); }
  bool wake_one(const Cell& dozing) { return Doze::wake_one(lot_, dozing, sleepers(dozing)); }
  void let_one_in(const Cell&, const Cell& dozing) { wake_one(dozing); }

 private:
  using Doze = locks::Doze<DozingLot>;
  /// Asks, and then sleeps at once.
  struct Pace {
    Dozing& m;
    const Expectation<Cell>& expected;
    bool has_asked = false;

    template <class Said>
    Asking::Next next(Said) {
      has_asked = !has_asked;
      return has_asked ? Asking::Next::ask : Asking::Next::sleep;
    }
    template <class Until>
    static bool pause(Asking::Next, Until) {
      return false;
    }
    bool is_next() const {
      return m.await(*expected.served, at_least(expected.counted), relaxed, Awaited::anyone);
    }
  };
  int ask(Cell* own, Cell& held, Cell& wanted, Cell& dozing, const Expectation<Cell>& expected) {
    Pace pace{*this, expected};
    return locks::ask(*this, own, expected.answer, held, wanted, pace, [&] {
      locks::sleep_in_turn(lot_, room_.announcements(thread().id()),
                           own != nullptr ? std::optional(bed(*own)) : std::nullopt,
                           expected.answer, held, bed(dozing), [&] { return pace.is_next(); });
      return true;
    });
  }
  locks::Bed<Cell> bed(Cell& cell) { return {cell, sleepers(cell)}; }
  Cell& sleepers(const Cell& cell) { return room_.beds.at(cell.location).sleepers; }

  DozingLot lot_;
  Bedroom& room_;
};

static_assert(LockMachine<Dozing>);

/// Client 0 has the lock at first, unless it is a server that leaves. The others have requests, or
/// wait for the lock itself.
class DozingRehearsal {
  using M = Dozing;
  using Lock = locks::Auto<M>;

 public:
  DozingRehearsal(const LockScenario& scenario, Tuning& tuning, Memory& memory)
      : scenario_(scenario),
        tuning_(tuning),
        cells_(memory, 6, scenario.clients, 2),
        data_(memory, scenario.clients, scenario.clients),
        room_(memory, scenario.clients),
        had_{memory.add(0, "the last one has had the lock")} {
    memory.set_initial(departs() ? server().location : held().location, 1);
    memory.set_initial(cells_.global(1).location, scenario.clients);
    memory.set_initial(cells_.global(4).location,
                       locks::StandBack{0, locks::StandBack::who_is_near}.word());
    room_.add(memory, cells_.global(3), 0);
    for (unsigned client = 0; client < scenario.clients; ++client) {
      room_.add(memory, cells_.of(client, 0), client);
    }
  }

  /// Of three clients the last two sleep by then, or are about to.
  void begin(Program& program) const {
    if (scenario_.variant == LockVariant::visits)
      return check::begin(program, {{1, cells_.global(3).location}});
    if (scenario_.clients < 3) return;
    const Location held = cells_.global(0).location;
    const Location wanted = cells_.global(2).location;
    const Location dozing = cells_.global(3).location;
    const auto entry = [&](unsigned client) { return cells_.of(client, 0).location; };
    const auto announced = [&](unsigned client) { return room_.all[client].sleepers.location; };
    switch (scenario_.variant) {
      case LockVariant::dozes:  // the last one is about to post
        return check::begin(program, {{1}, {2, entry(2)}, {0, wanted}});
      case LockVariant::turns:  // the hint is lost, and the first one has let another in
        return check::begin(program,
                            {{1, announced(1)}, {2, announced(2)}, {0, dozing}, {1}, {2}, {0}});
      case LockVariant::alone:  // that one has the lock, and is about to give it back
        return check::begin(program, {{1}, {2}, {0}, {1, held, 2}});
      case LockVariant::nested:  // the first one has given the lock back
        return check::begin(program, {{1}, {2, dozing}, {0}});
      case LockVariant::stands:
        return check::begin(program, {{1, dozing}, {2, dozing}, {0, dozing}});
      case LockVariant::awaits:  // the first one has given the lock back, and woken the second one
        return check::begin(program, {{1}, {2}, {0}});
      case LockVariant::served:
        return check::begin(program, {{1, dozing}, {2}, {0, held, 3}});
      case LockVariant::departs:
        return check::begin(program, {{1}});
      case LockVariant::aided:  // the last one is about to say that it sleeps
        return check::begin(program, {{1}, {2, dozing}, {0, wanted}});
      default:  // likewise, and the second one is about to post
        return check::begin(program, {{2, dozing}, {1, entry(1)}, {0, dozing}});
    }
  }

  void run(Thread& self) {
    M m(self, tuning_, room_);
    const unsigned client = self.id();
    M::Cell* const back = scenario_.variant == LockVariant::stands ? &cells_.global(4) : nullptr;
    const Lock lock(desk(), {cells_.global(2), dozing(), back}, departs() ? &server() : nullptr);
    typename Lock::Ticket ticket = lock.ticket(client);
    ticket.ring.entered = true;
    ticket.habit.set_delegates(true);
    if (scenario_.variant == LockVariant::visits) {
      ticket.habit.visits = locks::Habit::visits_max - 1;
    }
    if (scenario_.variant == LockVariant::served && client == 0) return serve(m, lock);
    if (departs() && client == 0) return depart(m, lock);
    bool has_it = client == 0;
    const bool has_more = scenario_.variant == LockVariant::visits && client == 0;
    for (Word number = 1; number <= scenario_.sections + (has_more ? 1 : 0); ++number) {
      CheckedWork work(data_, client);
      if (scenario_.variant == LockVariant::awaits) {
        work.pause([&] { await_last(m, lock); });
      }
      m.write(data_.argument[client], number);
      if (has_it || scenario_.acquires(client)) {
        if (!has_it && !lock.take(m)) lock.take_in_turn(m);
        work.run_own(m);
        give(m, lock, ticket, work);
      } else {
        lock.execute(m, ticket.ring, ticket.habit, work, [=, this] { return combines(client); });
      }
      has_it = false;
      self.check(m.read(data_.result[client]) == 10 * number + client, "another's result");
    }
  }

 private:
  /// Whether it executes others' requests.
  bool combines(unsigned client) const {
    if (scenario_.variant == LockVariant::aided) return client == 0;
    if (scenario_.variant == LockVariant::unaided) return client != 0;
    return scenario_.variant != LockVariant::alone && scenario_.variant != LockVariant::awaits;
  }

  /// What is left of one round, and another one.
  void serve(M& m, const Lock& lock) {
    lock.give_and_let_in(m);
    const locks::Rings<M> rings(1, cells_);
    locks::serve(m, rings,
                 PassingServer<M>{
                     {m, cells_.global(1)}, rings, {lock}, data_, scenario_.clients, nullptr, 1});
  }
  /// What was posted before is executed.
  void depart(M& m, const Lock& lock) {
    const auto each_entry = [this](auto look) {
      for (unsigned client = 0; client < scenario_.clients; ++client) look(cells_.of(client, 0));
    };
    CheckedWork work(data_, 0);
    locks::Pending<M> last;
    locks::depart(m, DepartureLot{{m.thread(), tuning_}}, server(), each_entry, last, [&] {
      if (!lock.take(m)) return static_cast<void>(m.await(held(), equals(0), relaxed));
      desk().pass(m, work);
      lock.give_and_let_in(m);
    });
  }
  /// In the middle of a section, as for a condition.
  void await_last(M& m, const Lock& lock) {
    if (m.thread().id() == 2) m.store(had_, 1, relaxed);
    if (m.thread().id() != 1) return;
    lock.give(m);
    m.await(had_, equals(1), relaxed);
    lock.take_in_turn(m);
  }

  /// In another section nobody executes others' requests.
  void give(M& m, const Lock& lock, typename Lock::Ticket& ticket, CheckedWork& work) {
    const bool nests =
        scenario_.variant == LockVariant::nested || scenario_.variant == LockVariant::awaits;
    if (nests) return lock.give(m);
    const auto combining = [&] { return combines(ticket.ring.client); };
    const auto visit = [&] { lock.give_after_visit(m, ticket.habit, work, combining); };
    if (scenario_.variant != LockVariant::inlined) return lock.give(m, ticket.habit, visit);
    if (!detail::give_at_once(Row{m, *this})) visit();
  }

  /// What code in line has of the lock.
  struct Row {
    M& m;
    const DozingRehearsal& all;

    bool take() const { return m.take_held(all.held()); }
    bool is_wanted() const { return m.load(all.cells_.global(2), relaxed) != 0; }
    void give() const { m.give_held(all.held()); }
    bool is_dozing() const { return m.is_dozing(all.dozing()); }
  };
  bool departs() const { return scenario_.variant == LockVariant::departs; }
  locks::Desk<M> desk() const { return {&held(), &cells_.global(1), {1, cells_}, 0}; }
  M::Cell& held() const { return cells_.global(0); }
  M::Cell& server() const { return cells_.global(5); }
  M::Cell& dozing() const { return cells_.global(3); }

  const LockScenario scenario_;
  Tuning& tuning_;
  Checked::Cells cells_;
  Data data_;
  Bedroom room_;
  Checked::Cell had_;
};

inline Program rehearse_dozing(const LockScenario& scenario, Tuning& tuning) {
  Program program{.name = scenario.name(), .threads = scenario.clients};
  const auto rehearsal = std::make_shared<DozingRehearsal>(scenario, tuning, program.memory);
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  rehearsal->begin(program);
  return program;
}

}  // namespace muster::check
