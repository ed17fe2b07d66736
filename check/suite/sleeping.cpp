// SPDX-License-Identifier: BSD-3-Clause
#include "check/suite/sleeping.hpp"

#include <map>

#include "check/graph.hpp"
#include "machine/lifetime.hpp"
#include "wait/sleep.hpp"

namespace muster::check {
namespace {

/// Thrown by a participant's lot: it has died.
struct Dead {};

/// How a participant sleeps, and what happens to it besides.
struct Accident {
  bool asks = false;         ///< the storers for full fences
  bool interrupted = false;  ///< its first sleep may end by itself: a signal, or a slice is over
  bool mortal = false;       ///< it may die before any step of its first sleep
};

/// The primitives of wait/sleep.hpp. A queue word counts the
/// wake-ups of each word somebody may sleep on. As under the kernel's lock on its queue, who parks
/// sees what was stored before the wake-ups that came before, and is woken by those that come
/// after.
class CheckedLot {
 public:
  using Atom = Checked::Cell;
  using Queues = std::map<Location, Location>;

  CheckedLot(Thread& thread, Tuning& tuning, const Queues& queues, Accident accident)
      : thread_(thread), tuning_(tuning), queues_(queues), asks_(accident.asks) {
    if (accident.interrupted) interrupted_ = thread.choose(2) != 0;
    if (accident.mortal) steps_left_ = thread.choose(steps_of_a_sleep + 1);
  }

  Word add(const Atom& atom, Word delta, Site site = Site::here()) {
    live();
    return thread_.fetch_add(atom.location, delta, Ordering::relaxed, site);
  }
  void replace(const Atom& atom, Word from, Word to, Site site = Site::here()) {
    thread_.compare_exchange(atom.location, from, to, Ordering::relaxed, site);
  }
  Word peek(const Atom& atom, Site site = Site::here()) {
    live();
    return thread_.load(atom.location, Ordering::relaxed, site);
  }
  void light_fence(Site site = Site::here()) { fence("light fence", Ordering::light, site); }
  void heavy_fence(Site site = Site::here()) { fence("heavy fence", Ordering::heavy, site); }
  void full_fence(Site site = Site::here()) { fence("full fence", Ordering::seq_cst, site); }
  bool asks_for_fences() const { return asks_; }
  bool tired() const { return true; }
  void park(const Atom& atom, Word seen, Site site = Site::here()) {
    live();
    if (interrupted_) {
      interrupted_ = false;
      return;
    }
    const Location queue = queues_.at(atom.location);
    const Word turn = thread_.load(queue, Ordering::acquire, site);
    if (thread_.load(atom.location, Ordering::relaxed, site) != seen) return;
    thread_.await(queue, Predicate(Differs{turn}), Ordering::acquire, site);
  }
  void unpark_all(const Atom& atom, Site site = Site::here()) {
    thread_.fetch_add(queues_.at(atom.location), 1, Ordering::acq_rel, site);
  }

 private:
  static constexpr Word steps_of_a_sleep = 9;  // two fewer where it does not ask

  void live() {
    if (steps_left_-- == 0) throw Dead{};
  }
  void fence(const char* what, Ordering order, Site site) {
    live();
    const Ordering tuned = tuning_.order_at(site, what, order);
    if (tuned != Ordering::relaxed) thread_.fence(tuned, site);
  }

  Thread& thread_;
  Tuning& tuning_;
  const Queues& queues_;
  bool asks_;
  bool interrupted_ = false;
  Word steps_left_ = ~Word{0};
};

struct SleepCell {
  Checked::Cell value;
  Checked::Cell sleepers;
};

/// Shared words: three cells to wait on and the announcements.
struct Room {
  std::vector<SleepCell> cells;
  Announcements<Checked::Cell> all;
  CheckedLot::Queues queues;
  Checked::Plain<Word> data[2];
  Checked::Cell broken;
  Checked::Cell phases[2];
  Checked::Plain<Word> memory;
};

std::shared_ptr<Room> make_room(Memory& memory) {
  auto room = std::make_shared<Room>();
  const auto word = [&](const std::string& name) { return Checked::Cell{memory.add(0, name)}; };
  const auto queue = [&](const Checked::Cell& cell) {
    room->queues[cell.location] = memory.add(0, "queue of " + memory.name(cell.location));
  };
  for (const char* name : {"a", "b", "c"}) {
    room->cells.push_back({word(name), word(std::string("sleepers on ") + name)});
    queue(room->cells.back().value);
  }
  room->all = {word("sleepers"), word("sleepers on the bell"), word("bell")};
  queue(room->all.bell);
  for (int i = 0; i < 2; ++i) {
    room->data[i] = {memory.add(0, "data " + std::to_string(i))};
    room->phases[i] = word("phase of rank " + std::to_string(i));
  }
  room->broken = word("broken");
  room->memory = {memory.add(0, "the barrier's memory")};
  return room;
}

/// A participant: stores and waits as the hardware machine does, spinning once.
class Participant {
 public:
  Participant(Thread& thread, Tuning& tuning, Room& room, Accident accident)
      : thread_(thread),
        tuning_(tuning),
        room_(room),
        lot_(thread, tuning, room.queues, accident) {}

  void write(int data) { thread_.write(room_.data[data].location, 1); }
  void read(int data) {
    thread_.check(thread_.read(room_.data[data].location) == 1, "woken before the data was there");
  }
  void store(int cell, Word value) {
    thread_.store(at(cell).value.location, value, Ordering::release);
    wake_sleepers(lot_, room_.all, at(cell).value, at(cell).sleepers);
  }
  void add(int cell, Word value) {
    thread_.fetch_add(at(cell).value.location, value, Ordering::acq_rel);
    wake_sleepers(lot_, room_.all, at(cell).value, at(cell).sleepers);
  }
  void await(int cell, Word value) {
    const auto ready = at_least(value);
    while (!ready(thread_.load(at(cell).value.location, Ordering::acquire))) {
      sleep_on(lot_, room_.all, at(cell).value, at(cell).sleepers, ready);
    }
  }
  /// Whichever of cells 0 and 1 is 1.
  int await_any() {
    for (;;) {
      for (int cell = 0; cell < 2; ++cell) {
        if (thread_.load(at(cell).value.location, Ordering::acquire) == 1) return cell;
      }
      sleep_on_bell(lot_, room_.all,
                    [&] { return lot_.peek(at(0).value) == 1 || lot_.peek(at(1).value) == 1; });
    }
  }

  /// Inside a barrier, outside again, and its end: machine/lifetime.hpp.
  void go_in() {
    Checked atoms(thread_, tuning_);
    enter(atoms, room_.broken, room_.phases[thread_.id()], 0);
  }
  void go_out() {
    Checked atoms(thread_, tuning_);
    thread_.read(room_.memory.location);  // what destroy frees is still there
    leave(atoms, room_.phases[thread_.id()], 0);
  }
  void destroy() {
    Checked atoms(thread_, tuning_);
    for (Checked::Cell& phase : room_.phases) await_left(atoms, phase);
    thread_.write(room_.memory.location, 1);
  }

 private:
  SleepCell& at(int cell) { return room_.cells[static_cast<std::size_t>(cell)]; }

  Thread& thread_;
  Tuning& tuning_;
  Room& room_;
  CheckedLot lot_;
};

const std::string asking = "-asking";
const std::string fences = "; sleepers ask for full fences";

struct Recipe {
  SleepProgram program;
  unsigned threads;
  void (*body)(Participant& self, unsigned id);
  bool interrupted = false;      ///< sleeps may end by themselves
  unsigned dies = ~unsigned{0};  ///< this one may die in its sleep
};

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = {
      {{"one", "one stores, one waits"},
       2,
       [](Participant& self, unsigned id) {
         if (id == 0) {
           self.write(0);
           self.store(0, 1);
         } else {
           self.await(0, 1);
           self.read(0);
         }
       }},
      {{"update", "one adds, one waits"},
       2,
       [](Participant& self, unsigned id) {
         if (id == 0)
           self.add(0, 1);
         else
           self.await(0, 1);
       }},
      {{"two-sleepers", "one stores, two wait on the same cell"},
       3,
       [](Participant& self, unsigned id) {
         if (id == 0)
           self.store(0, 1);
         else
           self.await(0, 1);
       }},
      {{"two-storers", "two count up, one waits for both"},
       3,
       [](Participant& self, unsigned id) {
         if (id < 2)
           self.add(0, 1);
         else
           self.await(0, 2);
       }},
      {{"two-cells", "one stores to two cells, on each of which another waits"},
       3,
       [](Participant& self, unsigned id) {
         if (id == 0) {
           self.store(0, 1);
           self.store(1, 1);
         } else {
           self.await(static_cast<int>(id) - 1, 1);
         }
       }},
      {{"exchange", "two wait for each other twice: storers become sleepers"},
       2,
       [](Participant& self, unsigned id) {
         const int mine = static_cast<int>(id);
         for (Word episode = 1; episode <= 2; ++episode) {
           self.store(mine, episode);
           self.await(1 - mine, episode);
         }
       }},
      {{"bell", "two store to a cell each, one waits for whichever comes first"},
       3,
       [](Participant& self, unsigned id) {
         if (id < 2) {
           self.write(static_cast<int>(id));
           self.store(static_cast<int>(id), 1);
         } else {
           self.read(self.await_any());
         }
       }},
      {{"bell-and-cell", "one stores; one waits for that cell, another for whichever of two"},
       3,
       [](Participant& self, unsigned id) {
         if (id == 0)
           self.store(0, 1);
         else if (id == 1)
           self.await(0, 1);
         else
           self.await_any();
       }},
      {{"interrupted", "two wait for each other, and sleeps may end by themselves"},
       2,
       [](Participant& self, unsigned id) {
         const int mine = static_cast<int>(id);
         self.store(mine, 1);
         self.await(1 - mine, 1);
       },
       true},
      {{"death", "as two-sleepers, and one of them may die at any step of its sleep"},
       3,
       [](Participant& self, unsigned id) {
         if (id == 0)
           self.store(0, 1);
         else
           self.await(0, 1);
       },
       false,
       2},
      {{"destroy",
        "two wait for each other, and one then frees the memory: no wake-up of the dead"},
       2,
       [](Participant& self, unsigned id) {
         const int mine = static_cast<int>(id);
         self.go_in();
         self.store(mine, 1);
         self.await(1 - mine, 1);
         self.go_out();
         if (id == 0) self.destroy();
       }},
  };
  return all;
}

}  // namespace

const std::vector<SleepProgram>& sleep_programs() {
  static const std::vector<SleepProgram> programs = [] {
    std::vector<SleepProgram> all;
    for (const Recipe& recipe : recipes()) {
      all.push_back(recipe.program);
      all.push_back({recipe.program.name + asking, recipe.program.what + fences});
    }
    return all;
  }();
  return programs;
}

Program make_sleep_program(const std::string& name, Tuning& tuning) {
  for (const Recipe& recipe : recipes()) {
    const bool asks = name == recipe.program.name + asking;
    if (!asks && name != recipe.program.name) continue;
    Program program{.name = "sleep " + name, .threads = recipe.threads};
    const auto room = make_room(program.memory);
    program.body = [room, asks, &recipe, &tuning](Thread& thread) {
      const bool mortal = recipe.dies == thread.id();
      try {
        Participant self(thread, tuning, *room, {asks, recipe.interrupted, mortal});
        recipe.body(self, thread.id());
      } catch (const Dead&) {  // the others go on
      }
    };
    if (recipe.dies < recipe.threads) return program;  // it takes back no announcement
    program.at_end = [room](const Graph& graph) -> const char* {
      const Word left = graph.newest_value(room->all.sleepers.location);
      bool taken_back = (left & sleepers_counted) == 0 &&
                        graph.newest_value(room->all.any_sleepers.location) == 0;
      for (const SleepCell& cell : room->cells) {
        taken_back = taken_back && graph.newest_value(cell.sleepers.location) == 0;
      }
      return taken_back ? nullptr : "somebody is still announced as a sleeper";
    };
    return program;
  }
  throw Error(Status::unknown_name, "no sleep program \"" + name + "\"");
}

}  // namespace muster::check
