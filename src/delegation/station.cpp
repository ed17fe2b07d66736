// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/station.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "delegation/cpus.hpp"
#include "delegation/work.hpp"
#include "lock/round.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"
#include "wait/linger.hpp"

namespace muster::delegation {
namespace {

/// In server_cell(), where no PU is known.
constexpr Word somewhere = ~Word{0};

/// With so many threads that send posts, clients wait whose sections post more: not for ever, since
/// what the others wait for may need this client. Where 64 clients post too much, 290 threads have
/// been made after two seconds; with 16 it is 230, with 256 490; with 0.25 s 730, with 4 s 200.
constexpr unsigned senders_max = 64;
constexpr std::int64_t wait_for_senders_ns = 1'000'000'000;

/// The watchdog finds a section that blocks within two of these. A look takes 50 us of a CPU of a
/// virtual machine, a hundredth of the time.
constexpr std::int64_t watchdog_period_ns = 4'000'000;
/// After a handover, then twice that, up to the usual one: who takes over may be blocked as soon.
/// Of twelve such each is found in 1.3 ms.
constexpr std::int64_t watchdog_first_period_ns = WaitPolicy::sleep_costs_ns;

}  // namespace

Station::Station()
    : memory_(3, seats_max * ring_bytes),
      lock_table_(reserve(Rings::locks_max * sizeof(Row))),
      rings_(depth, cells()) {
  watch_seats(*this);
}

Station::~Station() {
  stop();
  unwatch_seats(*this);
}

bool Station::has_pending(unsigned number) const noexcept {
  const Seat* const seat = find_seat(number);
  return seat != nullptr && seat->is_pending();
}

void Station::require_own_process() const {
  birth_.require("this server was started", "start the child's own");
}

/// Whether the calling thread executes a section of one of its locks, for itself or for others.
bool Station::is_around_caller() const noexcept {
  return this_thread.serving == this ||
         Inside::any_of([this](const AnyLock* lock) { return lock->station() == this; });
}

Station::Seat& Station::seat(unsigned number) {
  return seats_.of(number, [&] {
    return Seat{RingPort(memory_.domain(), number), {.client = number}};
  });
}

Word Station::add() {
  require_own_process();
  NumbersPort machine = numbers_port();
  const Word number = numbers_.add(machine, [this](Word known) -> Row& { return row(known); });
  if (number + 1 >= Rings::locks_max) {
    throw Error(Status::no_memory, "a server has at most 1,048,574 locks: start another one");
  }
  return number;
}

void Station::open(Word number, AnyLock* lock) {
  row(number).with_spare.store(0, std::memory_order_relaxed);  // its last lock may have blocked
  row(number).lock.store(lock, std::memory_order_release);
}

void Station::start(const ServerOptions& options) {
  require_own_process();
  {
    const std::scoped_lock lock(crew().roles);
    if (term_.is(house_, Term::leaving) && is_around_caller()) {
      throw Error(Status::busy,
                  "this server is ending, and awaits the section that would start it");
    }
    term_.await_end(house_);
    if (term_.is(house_, Term::serving)) throw Error(Status::busy, "this server runs already");
  }
  start_at(Places::instance().add_server(options.policy, options.cpus), options);
}

/// Gives the place back if the server cannot start.
void Station::start_at(const Places::Server& place, const ServerOptions& options) {
  std::unique_lock lock(crew().roles);
  if (!term_.is(house_, Term::stopped)) {
    Places::instance().remove_server(place);
    throw Error(Status::busy, "this server runs already");
  }
  join_watchdog();
  register_heavy_fence(false);
  cpus_of_process();  // counts them
  place_ = place;
  misplaced_.clear();
  term_.begin(house_);
  try {
    last_.reserve(seats_max * depth);  // while it may still be refused
    const std::string failure = bind(add_servant(), place_.cpus, options.cpus);
    if (!failure.empty()) throw Error(Status::invalid, "the server does not start: " + failure);
    const NoSignals its_own;
    watchdog_ = std::thread([this] { watch(); });
  } catch (...) {
    term_.leave(house_);
    lock.unlock();
    end([] {});
    throw;
  }
  server_cell().value.store(somewhere, std::memory_order_release);
  lock.unlock();
  Places::instance().tell_observer();
}

/// With the crew's mutex.
Station::Servant& Station::add_servant() {
  auto servant = std::make_unique<Servant>();
  Servant& self = *servant;
  servants_.reserve(servants_.size() + 1);
  const NoSignals its_own;
  // It begins with the mutex: everything here is done by then.
  self.thread = std::thread([this, &self] { serve(self); });
  clockid_t clock{};
  if (pthread_getcpuclockid(self.thread.native_handle(), &clock) == 0) self.clock = clock;
  servants_.push_back(std::move(servant));
  ++counters_.threads;
  return self;
}

/// Empty, or why the thread is not where it should be. The system leaves out the CPUs that are not
/// there: that is refused of those that were `named`.
std::string Station::bind(Servant& servant, const PuSet& cpus, const PuSet& named) {
  if (cpus.empty()) return {};
  const int error = bind_thread(servant.thread.native_handle(), cpus);
  const PuSet bound_to = binding_of(servant.thread);
  const PuSet left_out = bound_to.empty() ? PuSet() : named - bound_to;
  if (error == 0 && left_out.empty()) return {};
  return "it cannot be bound to CPU " + cpus.to_string() + ": " +
         (error != 0 ? std::strerror(error) : "it may not use " + left_out.to_string()) +
         "; name CPUs this process may use";
}

void Station::place(const ServerOptions& options) {
  require_own_process();
  Places& places = Places::instance();
  const Places::Server next = places.add_server(options.policy, options.cpus);
  std::unique_lock lock(crew().roles);
  std::string failure;
  std::vector<PuSet> before;
  if (!term_.is(house_, Term::serving)) failure = "it does not run";
  while (before.size() < servants_.size() && failure.empty()) {
    Servant& servant = *servants_[before.size()];
    before.push_back(binding_of(servant.thread));
    failure = bind(servant, next.cpus, options.cpus);
  }
  if (!failure.empty()) {
    for (std::size_t i = 0; i < before.size(); ++i) bind(*servants_[i], before[i]);
    lock.unlock();
    places.remove_server(next);
    throw Error(Status::invalid, "the server stays where it is: " + failure);
  }
  const Places::Server left = std::exchange(place_, next);
  misplaced_.clear();
  lock.unlock();
  places.remove_server(left);
  places.tell_observer();
}

std::optional<unsigned> Station::core() const {
  require_own_process();
  const std::scoped_lock lock(crew().roles);
  return term_.is(house_, Term::stopped) ? std::nullopt : place_.core;
}

std::optional<unsigned> Station::numa_of(std::optional<unsigned> core) {
  if (!core) return std::nullopt;
  const CoreTree& tree = Places::instance().tree();
  return tree.numa_nodes()[tree.numa_of(*core)].os_index;
}

/// What a servant knows of the station's locks, and of waiting.
class Station::Server : public locks::Walk<RingPort> {
 public:
  Server(Station& station, Servant& self, RingPort& port) noexcept
      : Walk(port, station.cells().global(0)), station_(station), self_(self) {}

  [[gnu::noinline]] bool goes_on(bool found) {
    found ? idle_.reset() : idle();
    if (!station_.crew().is_alone(station_.house_, self_)) {
      pu_ = 0;  // another one has shown its own
      idle_.reset();
      if (!station_.crew().remains(station_.house_, self_)) return false;
    }
    if (port_.pu() != pu_) [[unlikely]]
      show_pu();
    return true;
  }
  locks::Auto<RingPort> lock(Word number) const { return station_.lock(number); }
  bool take(Word number) const { return lock(number).take(port_); }

  [[gnu::flatten]] bool execute(Word lock, Word client, Rings::Next request) {
    client_ = client;
    Row& row = station_.row(lock);
    // Which lock has this number: it does not end while `held` is taken.
    WorkFrom<Outermost, RingBoard> work({}, station_.board(),
                                        row.lock.load(std::memory_order_acquire));
    locks::Ahead<House>::execute(station_.house_, station_.crew(), self_, row.with_spare, [&] {
      std::uint64_t progress = self_.progress.load(std::memory_order_relaxed);
      self_.progress.store(progress + Servant::executes, std::memory_order_relaxed);
      locks::execute_row(port_, station_.rings_, client, request, work, [&] {
        // What the next one posts may be what the posts of this one wait for: this thread sends
        // these first. Not where it would be the next of many threads that do.
        const bool sends_first = this_thread.todo != 0 && !station_.has_senders(senders_max / 2);
        if (sends_first) return false;
        progress += Servant::section;
        self_.progress.store(progress + Servant::executes, std::memory_order_relaxed);
        return true;
      });
      self_.progress.store(progress + Servant::section, std::memory_order_relaxed);
    });
    return this_thread.todo == 0 && self_.is_counted();
  }

  bool has_given() const {
    if (this_thread.todo != 0) [[unlikely]]
      send_posts();
    return self_.is_counted();
  }

 private:
  bool is_any_pending() const {
    return locks::any_pending(port_, station_.rings_, station_.cells().global(0));
  }
  void idle() {
    if (!idle_) {
      port_.set_policy(cpus_last_counted() == 1 ? WaitPolicy::oversubscribed()  // its clients', too
                                                : WaitPolicy::dedicated());
      idle_.emplace(port_, Awaited::anyone);  // in a crowd, too: its CPU is its own
    }
    if (idle_->next() != RingPort::Next::sleep) return;
    // Where others have the locks of all that is pending a sleep would be over at once, but
    // interrupt every CPU that runs the process.
    is_any_pending() ? nap(0) : sleep();
    // When it is over: till then it is `asleep`, and the steward sees one or the other.
    station_.sleeps_.fetch_add(1, std::memory_order_relaxed);
  }
  /// To clients, unless the server leaves.
  [[gnu::cold, gnu::noinline]] void show_pu() {
    pu_ = port_.pu();
    std::atomic<Word>& server = station_.server_cell().value;
    Word seen = server.load(std::memory_order_relaxed);
    if (seen != 0) server.compare_exchange_strong(seen, pu_, std::memory_order_relaxed);
  }
  /// Until there is a request, or for a slice: a long one, since whoever posts rings.
  void sleep() const {
    const auto is_wanted = [this] { return is_any_pending(); };
    station_.crew().sleep(station_.house_, is_wanted, [this](auto is_over) {
      FutexLot lot(false);
      lot.set_slice(lot.longest_slice_ns());
      locks::Bell<FutexLot>::sleep(lot, station_.bell_, is_over);
    });
  }
  /// What a client's sections have left, or where no server runs executes it, which may block.
  [[gnu::noinline]] void send_posts() const {
    if (station_.senders_.fetch_add(1, std::memory_order_relaxed) >= senders_max) {
      station_.seats_.find(client_)->is_to_wait.store(true, std::memory_order_relaxed);
    }
    const std::uint64_t progress = self_.progress.load(std::memory_order_relaxed);
    self_.progress.store(progress + Servant::sends, std::memory_order_relaxed);
    send_kept_posts();
    if (!station_.birth_.is_here()) [[unlikely]]
      end_executors_child();
    self_.progress.store(progress, std::memory_order_relaxed);
    station_.senders_.fetch_sub(1, std::memory_order_relaxed);
  }

  Station& station_;
  Servant& self_;
  Word pu_ = 0;
  unsigned client_ = 0;  ///< whose request was executed last
  std::optional<RingPort::Wait> idle_;
};

/// Its rounds in one piece: each call between a request and its answer is time that its client
/// waits.
[[gnu::flatten]] void Station::serve(Servant& self) {
  { const std::scoped_lock made(crew().roles); }
  this_thread.serving = this;
  this_thread.servant = &self;
  this_thread.error = &errno;
  RingPort port(memory_.domain(), 0);
  locks::serve(port, rings_, Server(*this, self, port));
}

void Station::await_senders(Seat& seat) noexcept {
  seat.is_to_wait.store(false, std::memory_order_relaxed);
  const std::int64_t until_ns = now_ns() + wait_for_senders_ns;
  for (unsigned looks = 0; has_senders(senders_max) && now_ns() < until_ns; ++looks) linger(looks);
}

/// From here on clients help themselves; the server executes what they posted before.
void Station::depart(auto wait) {
  RingPort port(memory_.domain(), 0);
  const auto each_entry = [this](auto look) {
    // Without membarrier a post may still be on its way out of its core, for far less than this.
    if (register_heavy_fence(false) == HeavyFence::none) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    this->for_each_entry(look, [](unsigned) { return true; });
  };
  locks::depart(port, FutexLot(false), server_cell().value, each_entry, last_, wait);
}

void Station::stop() {
  require_own_process();
  if (is_around_caller()) {
    throw Error(Status::invalid,
                "a section cannot stop the server of its lock: stop it outside of sections");
  }
  {
    const std::scoped_lock lock(crew().roles);
    term_.await_end(house_);
    if (!term_.leave(house_)) return join_watchdog();
  }
  depart([this, looks = 0U]() mutable {
    ring_bell();
    linger(looks++);
  });
  end([this] {
    join_watchdog();
    if (!steward_) return;
    const std::scoped_lock lock(stewarding_);
    steward_->no_server(now_ns(), "it was stopped");
  });
}

/// By who has made it leave, when it has executed what it owes. `last()` comes before another
/// server may start.
void Station::end(auto last) {
  term_.end(house_, [&] {
    for (const auto& servant : servants_) servant->thread.join();
    {
      const std::scoped_lock lock(crew().roles);
      for (const auto& servant : servants_) counters_.executed += servant->executed();
      servants_.clear();
    }
    last();
    Places& places = Places::instance();
    places.remove_server(place_);
    places.tell_observer();
  });
}

bool Station::House::hire() const {
  Servant* added = nullptr;
  try {
    added = &station.add_servant();
    const std::string failure = bind(*added, station.place_.cpus);
    if (!failure.empty()) station.misplaced_ = failure;  // it serves all the same
  } catch (const std::exception&) {
    // Perhaps it is not bound: likewise.
  }
  return added != nullptr;
}

long Station::House::waits() {
  rusage usage{};
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

void Station::House::nap(Signal& signal, Mutex& mutex, bool for_long) const {
  if (for_long && !station.steward_) return wait(signal, mutex);
  wait_until(signal, mutex, until_ns(for_long ? FutexLot::between_looks_ns : nap_ns));
}

void Station::House::has_handed_over() {
  ++station.counters_.handovers;
  if (nap_ns == 0) return;
  ++station.counters_.by_watchdog;
  sees_handovers = true;
}

/// Who has been in one section for a whole period, or at sending posts, blocks there; sooner, if it
/// has had no CPU since the last look.
bool Station::House::is_stuck(Servant& servant) const {
  const std::uint64_t progress = servant.progress.load(std::memory_order_relaxed);
  const bool same = std::exchange(servant.seen, progress) == progress;
  if (progress % Servant::section == 0) return false;
  const std::int64_t cpu_ns = servant.cpu_ns();
  const bool rests = std::exchange(servant.cpu_seen_ns, cpu_ns) == cpu_ns && cpu_ns != 0;
  return same && (nap_ns == watchdog_period_ns || rests);
}

bool Station::enter_blocking() {
  return crew().step_aside(house_, *static_cast<Servant*>(this_thread.servant));
}

void Station::leave_blocking() {
  if (this_thread.servant == nullptr) return;  // a fork's child
  crew().come_back(house_, *static_cast<Servant*>(this_thread.servant));
}

void Station::watch() {
  House watchdog(*this);
  watchdog.nap_ns = watchdog_period_ns;
  std::int64_t since_steward_ns = 0;
  for (;;) {
    if (!crew().watch(watchdog)) return;
    since_steward_ns += watchdog.nap_ns;
    watchdog.nap_ns = std::exchange(watchdog.sees_handovers, false)
                          ? watchdog_first_period_ns
                          : std::min(2 * watchdog.nap_ns, watchdog_period_ns);
    const auto serves = [&] { return term_.is(watchdog, Term::serving); };
    if (!steward_ || since_steward_ns < watchdog_period_ns) continue;
    if (!House::within(crew().roles, serves)) continue;
    since_steward_ns = 0;
    if (!is_to_leave()) continue;
    if (House::within(crew().roles, [&] { return term_.leave(watchdog); })) break;
  }
  // It ends the server, and itself: who starts the next one joins it.
  watchdog.nap_ns = watchdog_period_ns;
  depart([&] { crew().watch(watchdog); });
  end([] {});
}

// What it has done so far.

ServerCounters Station::counters() const {
  require_own_process();
  const std::scoped_lock lock(crew().roles);
  ServerCounters all = counters_;
  all.ahead = ahead_.load(std::memory_order_relaxed);
  all.sleeps = sleeps_.load(std::memory_order_relaxed);
  for (const auto& servant : servants_) all.executed += servant->executed();
  return all;
}

std::string Station::describe() const {
  const ServerCounters c = counters();
  const std::scoped_lock lock(crew().roles);
  std::string text;
  if (!place_.cpus.empty()) text += "on CPU " + place_.cpus.to_string();
  if (place_.core) {
    const Places& places = Places::instance();
    if (place_.cpus.empty()) text += "not bound";
    if (!places.topology().is_this_machine()) {
      text +=
          ", counted on core " + std::to_string(*place_.core) + " of " + places.topology().source();
    }
    const auto numa = numa_of(place_.core);
    if (numa) text += ", NUMA node " + std::to_string(*numa);
  }
  text += format(
      "; {} sections executed, {} threads made, {} handovers ({} by the watchdog, {} ahead of "
      "sections that may block), {} sleeps",
      c.executed, c.threads, c.handovers, c.by_watchdog, c.ahead, c.sleeps);
  if (const unsigned senders = senders_; senders != 0) {
    text += "; threads that send what sections have posted: " + std::to_string(senders);
  }
  if (!misplaced_.empty()) text += "; a spare thread is elsewhere: " + misplaced_;
  return text;
}

std::shared_ptr<Station> default_station(locks::Style style) {
  static PerGeneration<std::shared_ptr<Station>> of_rcl;
  static PerGeneration<std::shared_ptr<Station>> of_auto;
  if (style == locks::Style::server) return of_rcl.get([] { return std::make_shared<Station>(); });
  return of_auto.get([] {
    auto made = std::make_shared<Station>();
    made->employ(locks::Steward());
    return made;
  });
}

}  // namespace muster::delegation
