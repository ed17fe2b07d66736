// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "check/graph.hpp"
#include "check/suite/exclusion.hpp"
#include "check/suite/station.hpp"
#include "lock/ahead.hpp"
#include "lock/term.hpp"

namespace muster::check {
namespace {

/// What a section does.
struct Section {
  unsigned client;     ///< whose
  int posts = -1;      ///< the request for that one; -1: none
  bool waits = false;  ///< until that one is executed
  bool tells = false;  ///< and steps aside meanwhile
};

struct Script {
  unsigned members;
  std::vector<Section> sections;  ///< the first one is there from the start
  bool watched = false;
  bool known = false;          ///< that sections of the first client's lock block
  std::optional<Word> left{};  ///< its next ones with a spare, in the end; unset: not looked at
  bool late = false;           ///< the first one comes later, from who is hired then
  bool interrupted = false;    ///< each one's first wait may end by itself
  unsigned failures = 0;       ///< so many threads cannot be made at first
  bool ends = false;           ///< else all vanish at the end, where they wait
  unsigned enders = 1;         ///< 0: the end is when the last one is executed
};

class Port;

/// Who waits draws a number, with the mutex; so many are called.
struct Signal {
  Checked::Cell drawn;
  Checked::Cell called;
};

class CrewRehearsal;

/// Thrown where a participant waits and this is the end, as such a number tells.
struct Over {};
constexpr Word over = 1 << 30;

/// The machine: a participant's port.
class Port : public Checked {
 public:
  using Atom = Cell;
  using Mutex = TicketMutex;
  using Signal = check::Signal;
  struct Member;

  Port(Thread& thread, Tuning& tuning, CrewRehearsal& all) : Checked(thread, tuning), all_(all) {}

  template <class Body>
  auto within(Mutex& mutex, Body body) {
    lock(mutex);
    return then_leave(body, [&] { unlock(mutex); });
  }
  void wait(Signal& signal, Mutex& mutex);
  void nap(Signal& signal, Mutex& mutex, bool for_long);
  void call_one(Signal& signal);
  void call_all(Signal& signal);
  template <Order O>
  void store(Cell& cell, Word word, OrderTag<O> order, Site site = Site::here());

  void ring();
  const std::vector<Member*>& members() const;
  bool hire();
  bool is_stuck(Member& member);
  static void has_handed_over() {}
  long waits() const;
  static void has_stepped_ahead() {}

  void count_wait() { ++waits_; }

  // What is no part of the crew's machine, and not to be weakened.
  Word look(const Cell& cell) {
    return thread().load(cell.location, Ordering::acquire, Site::here());
  }
  void say(const Cell& cell, Word word) {
    thread().store(cell.location, word, Ordering::release, Site::here());
  }
  Word add(const Cell& cell, Word more) {
    return thread().fetch_add(cell.location, more, Ordering::acq_rel, Site::here());
  }
  template <class Pred>
  Word until(const Cell& cell, Pred pred) {
    return thread().await(cell.location, Predicate(pred), Ordering::acquire, Site::here());
  }
  /// The same where it may be the end.
  void unless_over(const Cell& cell, Word least) {
    if (until(cell, at_least(least)) >= over) throw Over{};
  }

 private:
  void lock(Mutex& mutex);
  void unlock(Mutex& mutex);
  Word draw(Signal& signal);

  CrewRehearsal& all_;
  Word turn_ = 0;  ///< of the mutex
  bool has_mutex_ = false;
  bool has_rung_ = false;  ///< since it has that
  bool has_waited_ = false;
  Word time_ = 0;  ///< that it has seen pass
  long waits_ = 0;
  Cell* late_ = nullptr;
};

using Crew = locks::Crew<Port>;
using Term = locks::Term<Port>;
using Ahead = locks::Ahead<Port>;

Script script_of(LockVariant variant) {
  constexpr bool waits = true;
  constexpr bool tells = true;
  switch (variant) {
    case LockVariant::aside:  // the first client's second request comes while its first is executed
      return {.members = 2, .sections = {{0, 1, waits, tells}, {1, 2}, {0}}, .ends = true};
    case LockVariant::again:
      return {.members = 2, .sections = {{0, 1, waits, tells}, {1, 2}, {1, 3, waits, tells}, {0}}};
    case LockVariant::interrupted:
      return {.members = 2, .sections = {{0, 1, waits, tells}, {1}}, .interrupted = true};
    case LockVariant::watched:
      return {.members = 2, .sections = {{0, 1, waits}, {1, 2}, {0}}, .watched = true};
    case LockVariant::ahead:
      return {.members = 2,
              .sections = {{0, 1, waits}, {1, 2}, {0, 3, waits}, {1}},
              .known = true,
              .left = Ahead::after_block,
              .enders = 0};
    case LockVariant::roused:
      return {.members = 2,
              .sections = {{0, 1, waits}, {1}},
              .watched = true,
              .left = 1,
              .late = true,
              .enders = 0};
    case LockVariant::overlooked:
      return {.members = 2,
              .sections = {{0, 1, waits, tells}, {1, 2}, {1, 3, waits}, {0}},
              .watched = true,
              .enders = 0};
    case LockVariant::unmade:
      return {
          .members = 2, .sections = {{0, 1, waits, tells}, {1}}, .watched = true, .failures = 1};
    case LockVariant::crowd:
      return {.members = 3, .sections = {{0, 1, waits, tells}, {1, 2, waits, tells}, {2}}};
    default:
      return {.members = 1, .sections = {{0}}, .ends = true, .enders = 2};
  }
}

struct Port::Member : Crew::Member {
  Cell hired;  ///< 1: it is; 2: it never will be
  Cell busy;
  Cell gone;
};

class CrewRehearsal {
 public:
  CrewRehearsal(Script of, CrewFault with, Tuning& tuning, Memory& memory)
      : fault(with), script(std::move(of)), tuning_(tuning) {
    const auto word = [&](const std::string& name, Word initial = 0) {
      return Checked::Cell{memory.add(initial, name)};
    };
    const auto signal = [&](const std::string& name) {
      return Signal{word(name), word(name + " called")};
    };
    term.crew = {word("at work", 1),
                 word("stopping"),
                 word("asleep"),
                 word("vacant"),
                 word("spares"),
                 {word("mutex"), word("turn")},
                 signal("wait of a spare"),
                 signal("nap of the watchdog")};
    term.phase = word("phase", Term::serving);
    term.ended = signal("wait for the end");
    bell = word("bell");
    time = word("time");
    failed = word("threads not made");
    watchdog_gone = word("the watchdog has ended");
    server = {memory.add(0, "what the server has")};
    place = {memory.add(0, "its place")};
    for (unsigned id = 0; id < script.members; ++id) {
      const std::string number = " " + std::to_string(id);
      const Word first = id == 0 ? 1 : 0;
      auto member = std::make_unique<Port::Member>();
      member->counted = word("counted" + number, first);
      member->hired = word("hired" + number, first);
      member->busy = word("busy" + number);
      member->gone = word("gone" + number);
      members.push_back(member.get());
      owned_.push_back(std::move(member));
    }
    for (const Section& section : script.sections) {
      while (requests_.size() <= section.client) {
        const std::string client = " of client " + std::to_string(requests_.size());
        const bool is_first = script.known && requests_.empty();
        requests_.push_back({word("posted" + client), word("executed" + client),
                             word("with a spare" + client, is_first ? 1 : 0)});
      }
      requests_[section.client].sections.push_back(section);
    }
    if (!script.late) memory.set_initial(requests_[0].posted.location, 1);
  }

  unsigned participants() const {
    return script.members + (script.watched ? 1 : 0) + script.enders;
  }

  void run(Thread& self) {
    Port m(self, tuning_, *this);
    try {
      take_part(m, self.id());
    } catch (const Over&) {  // the others vanish, too
    }
  }

  void take_part(Port& m, unsigned id) {
    if (id < script.members) {
      if (id == 1 && script.late) post(m, requests_[0], 1);
      if (m.until(members[id]->hired, at_least(1)) == 1) serve(m, *members[id]);
    } else if (script.watched && id == script.members) {
      while (term.crew.watch(m)) {
      }
      m.say(watchdog_gone, 1);
    } else {
      end(m);
    }
  }

  const char* at_end(const Graph& graph) const {
    const auto newest = [&](const Checked::Cell& cell) {
      return graph.newest_value(cell.location);
    };
    for (const Client& client : requests_) {
      if (newest(client.executed) != 2 * client.sections.size()) return "not all were executed";
    }
    if (script.left && newest(requests_[0].with_spare) != script.left) {
      return "it is not known whether sections of the first lock block";
    }
    if (!script.ends) return nullptr;
    const bool nobody = newest(term.crew.at_work) == 0 && newest(term.crew.vacant) == 0 &&
                        newest(term.crew.spare) == 0;
    return nobody ? nullptr : "somebody is counted who has gone";
  }

  const CrewFault fault;
  const Script script;
  Term term;
  std::vector<Port::Member*> members;
  Checked::Cell bell;
  Checked::Cell time;  ///< grows when a section blocks, or nobody could be hired
  Checked::Cell failed;

 private:
  /// Its requests are executed in turn.
  struct Client {
    Checked::Cell posted;
    Checked::Cell executed;  ///< twice as many, and 1 while one is being executed
    Checked::Cell with_spare;
    std::vector<Section> sections{};
  };

  void serve(Port& m, Port::Member& self) {
    for (bool found = !script.late;; found = serve_round(m, self)) {
      if (!found) sleep(m);
      if (!term.crew.is_alone(m, self) && !term.crew.remains(m, self)) break;
    }
    m.read(server);
    m.say(self.gone, 1);
  }

  /// One request of each client.
  bool serve_round(Port& m, Port::Member& self) {
    bool found = false;
    for (Client& client : requests_) {
      const Word executed = m.look(client.executed);
      if (!is_wanted(m, client, executed)) continue;
      const Word seen = m.thread().compare_exchange(client.executed.location, executed,
                                                    executed + 1, Ordering::acq_rel);
      if (seen != executed) continue;
      found = true;
      const Section& section = client.sections[executed / 2];
      Ahead::execute(m, term.crew, self, client.with_spare, [&] { execute(m, self, section); });
      const bool is_last = &client == last_client() && executed / 2 + 1 == client.sections.size();
      if (script.enders == 0 && is_last) vanish(m);
      m.say(client.executed, executed + 2);
      if (script.enders == 0 && m.look(bell) >= over) throw Over{};
      if (m.load(self.counted, relaxed) == 0) break;
    }
    return found;
  }
  const Client* last_client() const { return &requests_[script.sections.back().client]; }
  static bool is_wanted(Port& m, const Client& client, Word executed) {
    return executed % 2 == 0 && m.look(client.posted) > executed / 2;
  }

  void execute(Port& m, Port::Member& self, const Section& section) {
    if (section.posts < 0) return;
    const Section& other = script.sections[static_cast<unsigned>(section.posts)];
    Client& client = requests_[other.client];
    Word number = 0;  // of its client's
    for (int at = 0; at <= section.posts; ++at) {
      if (script.sections[static_cast<unsigned>(at)].client == other.client) ++number;
    }
    post(m, client, number);
    if (!section.waits) return;
    const bool aside = section.tells && term.crew.step_aside(m, self);
    if (!section.tells) {
      m.say(self.busy, 1);
      m.add(time, 1);
    }
    m.until(client.executed, at_least(2 * number));
    m.count_wait();
    if (aside) term.crew.come_back(m, self);
    if (!section.tells) m.say(self.busy, 0);
  }
  void post(Port& m, Client& client, Word number) {
    m.say(client.posted, number);
    m.add(bell, 1);
  }

  void sleep(Port& m) {
    const auto is_any_pending = [&] {
      return std::any_of(requests_.begin(), requests_.end(), [&](const Client& client) {
        return is_wanted(m, client, m.look(client.executed));
      });
    };
    term.crew.sleep(m, is_any_pending, [&](auto is_over) {
      const Word rung = m.look(bell);
      if (rung >= over) throw Over{};
      if (!is_over()) m.unless_over(bell, rung + 1);
    });
  }

  /// When all is executed and one thread alone is at work.
  void end(Port& m) {
    const bool is_first = m.thread().id() + 1 == participants();
    for (const Client& client : requests_) {
      m.until(client.executed, equals(2 * static_cast<Word>(client.sections.size())));
    }
    if (script.enders == 1) m.until(term.crew.at_work, equals(1));
    if (!script.ends) return vanish(m);
    const bool ends = m.within(term.crew.roles, [&] {
      term.await_end(m);
      return term.leave(m);
    });
    if (ends) term.end(m, [&] { join(m); });
    if (is_first) m.write(server, Word(1));  // another one's, now
  }
  void vanish(Port& m) {
    m.within(term.crew.roles, [&] {
      Word counted = m.look(term.crew.vacant);
      for (const Port::Member* const member : members) counted += m.look(member->counted);
      m.thread().check(counted == m.look(term.crew.at_work),
                       "who is at work is not who is counted");
      dismiss(m);
      m.say(term.crew.spares.called, over);
      m.say(term.crew.watchdog.called, over);
      m.add(bell, over);
    });
  }
  /// Those who are not there.
  void dismiss(Port& m) {
    for (Port::Member* const member : members) {
      if (m.look(member->hired) == 0) m.say(member->hired, 2);
    }
  }
  void join(Port& m) {
    m.write(place, Word(1));  // it is given back once
    if (fault == CrewFault::ends_early) return;
    dismiss(m);
    for (Port::Member* const member : members) {
      if (m.look(member->hired) == 1) m.until(member->gone, equals(1));
    }
    if (script.watched) m.until(watchdog_gone, equals(1));
  }

  Tuning& tuning_;
  std::vector<std::unique_ptr<Port::Member>> owned_;
  std::vector<Client> requests_;
  Checked::Cell watchdog_gone;
  Checked::Plain<Word> server;
  Checked::Plain<Word> place;
};

void Port::lock(Mutex& mutex) {
  has_mutex_ = true;
  if (all_.fault == CrewFault::no_mutex) return;
  turn_ = mutex.lock(thread());
}
void Port::unlock(Mutex& mutex) {
  has_mutex_ = false;
  has_rung_ = false;
  if (all_.fault == CrewFault::no_mutex) return;
  mutex.unlock(thread(), turn_);
  if (late_ != nullptr) Checked::store(*late_, 1, relaxed);
  late_ = nullptr;
}

Word Port::draw(Signal& signal) {
  const Word mine = look(signal.drawn);
  say(signal.drawn, mine + 1);
  return mine;
}
void Port::wait(Signal& signal, Mutex& mutex) {
  if (all_.script.interrupted && !has_waited_) {
    has_waited_ = true;
    if (thread().choose(2) != 0) {
      unlock(mutex);
      return lock(mutex);
    }
  }
  if (all_.fault == CrewFault::waits_late) unlock(mutex);
  const Word mine = draw(signal);
  if (all_.fault != CrewFault::waits_late) unlock(mutex);
  unless_over(signal.called, mine + 1);
  lock(mutex);
}
void Port::nap(Signal& signal, Mutex& mutex, bool for_long) {
  if (for_long) return wait(signal, mutex);
  const Word mine = draw(signal);
  unlock(mutex);
  const auto awaitable = [](const Cell& cell, Word least) {
    return Awaitable{cell.location, Predicate(at_least(least)), Ordering::acquire, Site::here()};
  };
  const bool passed = thread().await_first({awaitable(signal.called, mine + 1),
                                            awaitable(all_.time, time_ + 1)}) == 1;
  if (passed) ++time_;
  lock(mutex);
  const Word called = look(signal.called);
  if (called >= over) {
    unlock(mutex);
    throw Over{};
  }
  if (called == mine) say(signal.called, mine + 1);
}
void Port::call_one(Signal& signal) {
  const bool spares = &signal == &all_.term.crew.spares;
  if (all_.fault == (spares ? CrewFault::spare_uncalled : CrewFault::watchdog_uncalled)) return;
  if (all_.fault == CrewFault::leaves_unroused && has_rung_) return;
  const Word called = look(signal.called);
  if (called != look(signal.drawn)) say(signal.called, called + 1);
}
void Port::call_all(Signal& signal) {
  const bool spares = &signal == &all_.term.crew.spares;
  if (all_.fault == CrewFault::spares_uncalled && spares) return;
  say(signal.called, look(signal.drawn));
}

template <Order O>
void Port::store(Cell& cell, Word word, OrderTag<O> order, Site site) {
  Crew& crew = all_.term.crew;
  if (all_.fault == CrewFault::spare_unwanted && &cell == &crew.vacant && word != 0) return;
  const bool rouses = &cell == &crew.asleep && word == 0;
  if (all_.fault == CrewFault::watchdog_dozes && rouses) return;
  if (all_.fault == CrewFault::leaves_unroused && has_rung_ && rouses) return;
  if (all_.fault == CrewFault::stops_late && &cell == &crew.stopping) {
    late_ = &cell;
    return;
  }
  Checked::store(cell, word, order, site);
}

void Port::ring() {
  if (all_.fault == (has_mutex_ ? CrewFault::leaves_unrung : CrewFault::ends_unrung)) return;
  has_rung_ = has_mutex_;
  add(all_.bell, 1);
}
const std::vector<Port::Member*>& Port::members() const { return all_.members; }
bool Port::hire() {
  const Word failed = look(all_.failed);
  if (failed < all_.script.failures) {
    say(all_.failed, failed + 1);
    add(all_.time, 1);
    return all_.fault == CrewFault::hires_nobody;
  }
  for (Member* const member : all_.members) {
    if (look(member->hired) != 0) continue;
    say(member->counted, 1);
    say(member->hired, 1);
    return true;
  }
  return false;
}
long Port::waits() const { return all_.fault == CrewFault::blocks_unseen ? 0 : waits_; }
bool Port::is_stuck(Member& member) { return look(member.busy) != 0; }

}  // namespace

Program rehearse_crew(const LockScenario& scenario, Tuning& tuning, CrewFault fault) {
  Program program{.name = scenario.name()};
  const auto rehearsal =
      std::make_shared<CrewRehearsal>(script_of(scenario.variant), fault, tuning, program.memory);
  program.threads = rehearsal->participants();
  program.body = [rehearsal](Thread& self) { rehearsal->run(self); };
  program.at_end = [rehearsal](const Graph& graph) { return rehearsal->at_end(graph); };
  return program;
}

}  // namespace muster::check
