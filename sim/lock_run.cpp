// SPDX-License-Identifier: BSD-3-Clause
#include "sim/lock_run.hpp"

#include <algorithm>
#include <cmath>

#include "lock/attended.hpp"
#include "lock/parking_cna.hpp"
#include "lock/parking_queue.hpp"
#include "lock/registry.hpp"
#include "lock/steward.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"

namespace muster::sim {
namespace {

constexpr std::uint64_t no_request = ~std::uint64_t{0};
constexpr std::string_view mutex_prefix = "mutex-";

/// The C library's mutex: Drepper 2004, mutex2, which lock/parking_front.hpp is.
template <class M>
class Mutex2 {
 public:
  static constexpr locks::Traits traits{"pthread", locks::Style::direct, false,
                                        "two while it changes hands, and a context switch",
                                        "Drepper 2004, mutex2"};
  struct Ticket {};
  static locks::Layout layout(const locks::Shape& shape) {
    return locks::ParkingWord<M>::layout(shape);
  }
  Mutex2(const locks::Shape&, typename M::Cells cells) : front_(cells, 0) {}
  Ticket ticket(unsigned) const { return {}; }
  bool acquire(M& m, Ticket&) const { return front_.come(m); }
  void release(M& m) const {
    if (front_.leave(m)) front_.wake(m);
  }

 private:
  locks::ParkingFront<M> front_;
};

/// A mutex as the locks are: a queue's words are given as that of one without is.
template <class L>
class MutexLock : public locks::Direct<MutexLock<L>> {
 public:
  static constexpr locks::Traits traits = L::traits;
  using Ticket = typename L::Ticket;

  static locks::Layout layout(const locks::Shape& shape) { return L::layout(shape); }
  MutexLock(const locks::Shape& shape, Sleeping::Cells cells)
      : mutex_(shape, cells), word_(shape, cells) {}
  Ticket ticket(unsigned client, unsigned numa) const {
    Ticket its = mutex_.ticket(client);
    if constexpr (requires { its.numa; }) its.numa = numa;
    return its;
  }
  bool acquire(Sleeping& m, Ticket& t) const { return mutex_.acquire(m, t); }
  void release(Sleeping& m, Ticket&) const {
    if constexpr (requires { mutex_.release(m); }) {
      mutex_.release(m);
    } else {
      word_.release(m);
    }
  }

 private:
  L mutex_;
  locks::ParkingWord<Sleeping> word_;
};

using Mutexes =
    std::tuple<MutexLock<Mutex2<Sleeping>>, MutexLock<locks::ParkingWord<Sleeping>>,
               MutexLock<locks::ParkingMcs<Sleeping>>, MutexLock<locks::ParkingCna<Sleeping>>>;

template <class... L>
std::vector<std::string> names_of(std::tuple<L...>*) {
  return {std::string(mutex_prefix).append(L::traits.name)...};
}
std::vector<std::string> mutex_names() { return names_of(static_cast<Mutexes*>(nullptr)); }

bool is_mutex(std::string_view name) { return name.starts_with(mutex_prefix); }

[[noreturn]] void throw_unknown(std::string_view name) {
  std::string message = name == locks::PthreadMutex::traits.name
                            ? "the model has pthread-mutex as mutex-pthread"
                            : format("no lock \"{}\" in the model", name);
  for (const std::string& known : modelled_locks()) {
    message += (&known == &modelled_locks().front() ? "; there are: " : ", ") + known;
  }
  throw Error(Status::unknown_name, message);
}

template <class Fn>
decltype(auto) with_mutex(std::string_view name, Fn&& fn) {
  return with_named<Mutexes>(name.substr(mutex_prefix.size()), fn, [&] { throw_unknown(name); });
}

[[noreturn]] void broken(const std::string& what) {
  throw Error(Status::system, "the lock broke its promise: " + what);
}

/// What all participants of a run share.
struct Bench {
  Bench(Engine& on, const LockSetup& asked)
      : engine(on), setup(asked), waits(asked.threads.size()) {}

  /// The section itself, on the core whose port it is.
  void increment(Modelled& m, std::uint64_t index) {
    if (inside || reading != 0) broken("two sections at the same time");
    inside = true;
    touch(m, index, (index & reads) == 0);
    inside = false;
    ++executed;
  }
  /// The same of one that only reads, beside others.
  void read(Modelled& m, std::uint64_t index) {
    ++reading;
    touch(m, index, false);
    if (inside) broken("a section beside one that only reads");
    --reading;
    ++executed;
  }
  void touch(Modelled& m, std::uint64_t index, bool writes) {
    if (setup.sections) {
      const auto words_a_line =
          static_cast<unsigned>(setup.parameters.cache_line) / array.element_bytes;
      for (unsigned n = 0; n < setup.sections->lines; ++n) m.touch(array, n * words_a_line, writes);
      engine.delay(m.participant(), around(setup.sections->held_ns));
    } else {
      m.touch(array, index & ~reads, writes);
    }
  }

  /// Half as long to half as long again: without any difference between them, a few clients and
  /// their server would fall into step.
  Time around(double mean_ns) {
    return static_cast<Time>((0.5 + engine.random().unit()) *
                             static_cast<double>(from_ns(mean_ns)));
  }
  /// What a thread does before its next section.
  Time pause() {
    const bool calls = setup.mechanisms.has(Mechanism::call_cost);
    const Time call = around(calls ? setup.parameters.lock_call_ns : 0);
    if (!setup.sections) return call;
    return call + from_ns(-std::log(1 - engine.random().unit()) * setup.sections->apart_ns);
  }

  /// A thread's operation is over: true if there is more to do.
  bool completed(unsigned thread, Time now) {
    waits.done(thread, now);
    ++operations;
    const std::uint64_t past = operations - std::min(operations, setup.warm_up);
    if (operations == setup.warm_up) {
      mark(0, now);
      waits.open();
    }
    if (past == setup.window) mark(1, now);
    if (past == 2 * setup.window) {
      mark(2, now);
      waits.close(now);
    }
    return past < 2 * setup.window;
  }

  void mark(unsigned which, Time now) {
    times[which] = now;
    DataCounts sum;
    for (unsigned p = 0; p < setup.geometry.participants(); ++p) {
      const DataCounts& counts = engine.data().counts(p);
      sum.accesses += counts.accesses;
      sum.private_misses += counts.private_misses;
      sum.shared_misses += counts.shared_misses;
      sum.memory += counts.memory;
      sum.far_memory += counts.far_memory;
    }
    counted[which] = sum;
  }

  Engine& engine;
  const LockSetup& setup;
  Modelled::Array array;
  std::vector<std::uint64_t> requests;                            ///< by slot
  static constexpr std::uint64_t reads = std::uint64_t{1} << 63;  // of an index: only reads it
  bool inside = false;
  unsigned reading = 0;
  std::uint64_t executed = 0;
  std::uint64_t operations = 0;
  unsigned at_work = 0;  ///< participants with threads that have not ended
  Time times[3] = {0, 0, 0};
  DataCounts counted[3];
  LockWaitsRecorder waits;
};

/// A client's work. A request lies on the line of its slot's flag: it comes along with it.
struct Section {
  Bench& bench;
  std::uint64_t index = 0;

  void run_own(Modelled& m) { bench.increment(m, index); }
  void put(Modelled&, Word slot) { bench.requests.at(slot) = index; }
  void posted(Modelled&) {}
  void run(Modelled& m, Word slot) {
    const std::uint64_t request = bench.requests.at(slot);
    if (request == no_request) broken("a section ran a second time");
    bench.requests[slot] = no_request;
    bench.increment(m, request);
  }
};

/// `Port`: the machine that the lock is over.
template <class L, class Port>
class Run {
 public:
  Run(const LockSetup& setup, const locks::Shape& shape, const std::vector<unsigned>& clusters,
      StackPool& pool)
      : setup_(setup),
        clusters_(clusters),
        layout_(L::layout(shape)),
        engine_(setup.geometry, setup.parameters, setup.mechanisms, setup.seed,
                cells() + setup.geometry.participants(), pool),
        beds_(engine_, cells(), setup.sleep),
        lock_(shape, Modelled::Cells(engine_, layout_.global_cells, layout_.cells_per_slot)),
        bench_(engine_, setup),
        server_(setup.server.value_or(0)),
        seen_(setup.threads.size()) {
    for (unsigned t = 0; t < setup.threads.size(); ++t) tickets_.push_back(ticket(t));
    bench_.array = {engine_.data().allocate(setup.words * 4, setup.home_die), 4};
    bench_.requests.assign(layout_.slots, no_request);
    for (unsigned slot = 0; slot < layout_.slots; ++slot) {  // first touched by its client
      const std::size_t client = slot * setup.threads.size() / layout_.slots;
      for (unsigned cell = 0; cell < layout_.cells_per_slot; ++cell) {
        engine_.set_home(layout_.global_cells + std::size_t{slot} * layout_.cells_per_slot + cell,
                         setup.threads[client]);
      }
    }
  }

  LockOutcome outcome() {
    if constexpr (requires(Modelled & m) { lock_.prepare(m); }) {
      engine_.start(setup_.threads.front(), [this] {
        Port port = this->port(setup_.threads.front());
        lock_.prepare(port);
      });
      engine_.run(UINT64_MAX);
    }
    if constexpr (L::traits.style == locks::Style::server) serve();
    const unsigned participants = setup_.geometry.participants();
    std::vector<std::vector<unsigned>> threads_of(participants);
    for (unsigned t = 0; t < setup_.threads.size(); ++t) {
      threads_of.at(setup_.threads[t]).push_back(t);
    }
    for (unsigned p = 0; p < participants; ++p) {
      if (threads_of[p].empty()) continue;
      ++bench_.at_work;
      engine_.start(
          p, [this, p, threads = std::move(threads_of[p])] { work(p, threads); },
          from_ns(100) + static_cast<Time>(engine_.random().below(1000)));
    }
    const std::uint64_t operations = setup_.warm_up + 2 * setup_.window;
    engine_.run((operations + 10'000) * (1000 + 100 * setup_.threads.size()));
    if (bench_.executed != bench_.operations) {
      broken(std::to_string(bench_.executed) + " sections for " +
             std::to_string(bench_.operations) + " operations");
    }
    return result();
  }

 private:
  std::size_t cells() const {
    return layout_.global_cells + std::size_t{layout_.slots} * layout_.cells_per_slot;
  }
  Port port(unsigned participant) {
    if constexpr (std::is_same_v<Port, Sleeping>) {
      return {engine_, participant, beds_};
    } else {
      return {engine_, participant};
    }
  }

  static constexpr bool may_serve = requires(L & lock, Port& port) { lock.stop(port); };
  static constexpr bool has_steward = may_serve && L::traits.style == locks::Style::adaptive;

  /// A core's threads in turn.
  void work(unsigned participant, const std::vector<unsigned>& threads) {
    struct Thread {
      unsigned number;
      typename L::Ticket& ticket;
      Walk walk;
    };
    std::vector<Thread> team;
    for (const unsigned t : threads) {
      team.push_back({t, tickets_[t],
                      Walk(setup_.pattern, setup_.words, setup_.stride, setup_.seed * 1000 + t)});
    }
    Port port = this->port(participant);
    Section section{bench_};
    const Time slice = from_ns(setup_.slice_ns);
    for (std::size_t turn = 0; more_; ++turn) {
      Thread& thread = team[turn % team.size()];
      // At first each once: a server looks at the slots of those who have called it.
      const Time until = engine_.clock(participant) + (turn < team.size() ? 0 : slice);
      do {
        engine_.delay(participant, bench_.pause());
        section.index = thread.walk.next();
        bench_.waits.call(thread.number, engine_.clock(participant));
        if constexpr (std::is_same_v<Port, Sleeping>) port.begin();
        if (!execute(port, thread.ticket, section)) return;
        if (!bench_.completed(thread.number, engine_.clock(participant))) more_ = false;
        if constexpr (has_steward) look(port);
      } while (more_ && (team.size() == 1 || engine_.clock(participant) < until));
    }
    if (--bench_.at_work != 0) return;
    if constexpr (may_serve) {
      if (serving_) lock_.stop(port);
    }
  }

  bool execute(Port& port, typename L::Ticket& ticket, Section& section) {
    if (setup_.readers > 0 && engine_.random().unit() < setup_.readers) {
      section.index |= Bench::reads;
      if constexpr (requires { lock_.acquire_shared(port, ticket); }) {
        if (!lock_.acquire_shared(port, ticket)) return false;
        bench_.read(port, section.index);
        lock_.release_shared(port, ticket);
        return true;
      }
    }
    return lock_.execute(port, ticket, section);
  }

  void serve() {
    serving_ = true;
    engine_.start(server_, [this] {
      Port port = this->port(server_);
      Section section{bench_};
      lock_.start(port);
      lock_.serve(port, section);
      serving_ = false;
    });
  }

  /// The steward sees what a station shows it (delegation/station_steward.cpp) while the lock warms
  /// up, so often that it can start a server and judge it.
  void look(Port& port) {
    constexpr std::uint64_t looks = 48;
    const std::uint64_t between = std::max<std::uint64_t>(1, setup_.warm_up / looks);
    if (bench_.operations % between != 0 || bench_.operations > setup_.warm_up) return;
    const auto clients = static_cast<unsigned>(setup_.threads.size());
    locks::Steward::Look now{.now_ns = port.time_ns(),
                             .sections = bench_.operations,
                             .clients = clients,
                             .usable_cpus = clients + 1,
                             .threads_cpus = static_cast<double>(clients)};
    for (unsigned t = 0; t < tickets_.size(); ++t) {
      const locks::Habit& habit = tickets_[t].habit;
      now.meets += habit.delegated.value();
      now.add(habit.pace, seen_[t], setup_.threads[t]);
    }
    if (const auto& fastest = steward_.fastest()) {
      now.server_is_near = share_memory(fastest->place, server_);
    }
    constexpr locks::Steward::Rules rules;
    constexpr std::uint64_t trial = rules.trial_looks + 1;
    const auto can_be_judged = [&](std::uint64_t after) {
      return bench_.operations + after * between <= setup_.warm_up;
    };
    if (serving_ && steward_.may_move()) {
      now.server = server_;
      if (can_be_judged(2 * (rules.looks_to_start + trial))) now.untried = untried_spare();
    }
    const auto advice = steward_.look(now);
    if (advice == locks::Steward::Advice::leave) lock_.stop(port);
    if (advice == locks::Steward::Advice::start) {
      can_be_judged(trial) ? start_server(port)
                           : steward_.no_server(now.now_ns, "it could not be judged any more");
    }
    lock_.tell(port, steward_.stand_back());
  }
  void start_server(Port& port) {
    const std::int64_t now_ns = port.time_ns();
    if (serving_) return steward_.no_server(now_ns, "the last one is about to end");
    if (const auto near = steward_.near()) {
      const auto spare = std::find_if(setup_.spares.begin(), setup_.spares.end(),
                                      [&](unsigned p) { return share_memory(p, *near); });
      if (spare == setup_.spares.end()) {
        return steward_.no_server(now_ns, "no core is free near the data");
      }
      server_ = *spare;
    }
    serve();
  }

  std::optional<unsigned> untried_spare() const {
    const auto is_untried = [this](unsigned spare) {
      const auto& tried = steward_.tried();
      return !share_memory(spare, server_) &&
             std::none_of(tried.begin(), tried.end(),
                          [&](const auto& server) { return share_memory(spare, server.place); });
    };
    const auto at = std::find_if(setup_.spares.begin(), setup_.spares.end(), is_untried);
    return at == setup_.spares.end() ? std::nullopt : std::optional(*at);
  }

  bool share_memory(unsigned participant, unsigned other) const {
    const Geometry& where = setup_.geometry;
    return where.share_memory(where.die_of(participant), where.die_of(other));
  }

  typename L::Ticket ticket(unsigned client) const {
    if constexpr (requires { lock_.ticket(client, 0U); }) {
      return lock_.ticket(client, clusters_[client]);
    } else {
      return lock_.ticket(client);
    }
  }

  LockOutcome result() const {
    const auto percent = [](std::uint64_t part, std::uint64_t whole) {
      return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    };
    const auto rate = [&](unsigned to) {
      return static_cast<double>(to * setup_.window) * 1e9 /
             to_ns(bench_.times[to] - bench_.times[0]);
    };
    const DataCounts& from = bench_.counted[0];
    const DataCounts& to = bench_.counted[2];
    const std::uint64_t accesses = to.accesses - from.accesses;
    LockOutcome outcome;
    outcome.throughput_ops_s = rate(2);
    outcome.change = rate(1) / rate(2) - 1;
    outcome.cache_misses_percent = percent(to.shared_misses - from.shared_misses, accesses);
    outcome.private_misses_percent = percent(to.private_misses - from.private_misses, accesses);
    outcome.far_memory_percent = percent(to.far_memory - from.far_memory, to.memory - from.memory);
    outcome.waits = bench_.waits.result();
    outcome.events = engine_.events();
    return outcome;
  }

  const LockSetup& setup_;
  const std::vector<unsigned>& clusters_;
  locks::Layout layout_;
  Engine engine_;
  Beds beds_;
  L lock_;
  Bench bench_;
  std::vector<typename L::Ticket> tickets_;  ///< by thread
  bool more_ = true;
  bool serving_ = false;
  unsigned server_;
  locks::Steward steward_;
  std::vector<locks::Steward::Seen> seen_;  ///< by thread
};

}  // namespace

void check_cores(std::string_view name, std::vector<unsigned> threads,
                 std::optional<unsigned> server) {
  const std::size_t all = threads.size();
  std::sort(threads.begin(), threads.end());
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  if (may_have_server(name) && server &&
      std::binary_search(threads.begin(), threads.end(), *server)) {
    throw Error(Status::invalid, "the model gives a server a core of its own");
  }
  if (!wants_server(name) && threads.size() < all) {
    throw Error(Status::invalid,
                format("{} with {} threads on {} cores: one that is preempted with the lock holds "
                       "up all others, which the model does not show; ask for no more threads than "
                       "cores, or for a lock with a server",
                       name, all, threads.size()));
  }
}

LockOutcome run_lock(std::string_view name, const LockSetup& asked, StackPool& pool) {
  LockSetup setup = asked;
  // Locks wait in a loop of their own, not in an MPI's progress; their slots lie next to each
  // other, not a page apart.
  setup.parameters.poll_turn_ns = setup.parameters.lock_turn_ns;
  setup.mechanisms = setup.mechanisms.without(Mechanism::set_conflicts);

  const bool serves = wants_server(name);
  if (setup.threads.empty()) throw Error(Status::invalid, "there has to be a thread");
  if (setup.window == 0) throw Error(Status::invalid, "the window has to have operations");
  if (serves && !setup.server) {
    throw Error(Status::invalid, std::string(name) + " needs a core for its server");
  }
  check_cores(name, setup.threads, setup.server);

  locks::Shape shape;
  shape.clients = static_cast<unsigned>(setup.threads.size());
  std::vector<unsigned> dies;
  std::vector<unsigned> clusters;
  for (const unsigned participant : setup.threads) {
    const unsigned die = setup.geometry.die_of(participant);
    auto found = std::find(dies.begin(), dies.end(), die);
    if (found == dies.end()) found = dies.insert(found, die);
    clusters.push_back(static_cast<unsigned>(found - dies.begin()));
  }
  shape.clusters = static_cast<unsigned>(dies.size());
  if (is_mutex(name)) {
    shape.limit = 256;  // as run/mutex.cpp has it
    const std::vector<unsigned>& memory = setup.geometry.memory_of_;
    if (!memory.empty()) {
      std::transform(setup.threads.begin(), setup.threads.end(), clusters.begin(),
                     [&](unsigned p) { return memory[setup.geometry.die_of(p)]; });
    }
    return with_mutex(
        name, [&]<class L>() { return Run<L, Sleeping>(setup, shape, clusters, pool).outcome(); });
  }
  if (may_have_server(name) && !serves && setup.server) {
    return Run<locks::Attended<Modelled>, Modelled>(setup, shape, clusters, pool).outcome();
  }
  return locks::with_lock<Modelled>(
      name, [&]<class L>() { return Run<L, Modelled>(setup, shape, clusters, pool).outcome(); });
}

const std::vector<std::string>& modelled_locks() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const std::string_view name : locks::lock_names()) {
      if (name != locks::PthreadMutex::traits.name) all.emplace_back(name);
    }
    for (std::string& mutex : mutex_names()) all.push_back(std::move(mutex));
    return all;
  }();
  return names;
}

bool wants_server(std::string_view name) {
  const std::vector<std::string>& known = modelled_locks();
  if (std::find(known.begin(), known.end(), name) == known.end()) throw_unknown(name);
  return !is_mutex(name) && locks::traits_of(name).style == locks::Style::server;
}

bool may_have_server(std::string_view name) {
  return wants_server(name) ||
         (!is_mutex(name) && locks::traits_of(name).style == locks::Style::adaptive);
}

}  // namespace muster::sim
