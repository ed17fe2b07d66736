// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/station.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <system_error>

#include "delegation/work.hpp"
#include "machine/error.hpp"

namespace muster::delegation {
namespace {

constexpr std::size_t entry_bytes = 32;
constexpr std::size_t ring_bytes =
    (Station::Rings::cells_per_client(Station::depth) * entry_bytes + line_bytes - 1) / line_bytes *
    line_bytes;
static_assert(sizeof(Hardware::Cell) + sizeof(Request) <= entry_bytes);
constexpr std::size_t globals = 2;
constexpr std::size_t rings_at = (1 + globals) * line_bytes;

/// In one go for one client, before the next one's turn.
constexpr unsigned batch_max = Station::depth;
constexpr unsigned idle_polls = 512;  ///< passes, before it yields between them
constexpr std::int64_t idle_before_sleep_ns = 2'000'000;
constexpr auto watchdog_period = std::chrono::milliseconds(4);
constexpr auto watchdog_idle_period = std::chrono::milliseconds(500);

std::mutex placement_mutex;
std::map<unsigned, unsigned> servers_on_cpu;

/// The allowed CPU with the fewest servers; among equals the last: programs fill from the first.
unsigned pick_cpu() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  const std::scoped_lock lock(placement_mutex);
  unsigned best = CPU_SETSIZE;
  for (unsigned cpu = CPU_SETSIZE; cpu-- > 0;) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    if (best == CPU_SETSIZE || servers_on_cpu[cpu] < servers_on_cpu[best]) best = cpu;
  }
  return best;
}

void count_servers(const std::vector<unsigned>& cpus, unsigned change) {
  const std::scoped_lock lock(placement_mutex);
  for (const unsigned cpu : cpus) servers_on_cpu[cpu] += change;
}

cpu_set_t mask_of(const std::vector<unsigned>& cpus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const unsigned cpu : cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &mask);
  }
  return mask;
}

}  // namespace

Station::Station()
    : memory_(rings_at + seats_max * ring_bytes),
      cells_(memory_.data() + line_bytes, memory_.data() + rings_at, entry_bytes, ring_bytes,
             line_bytes),
      board_{.first = memory_.data() + rings_at + sizeof(Hardware::Cell),
             .stride = ring_bytes,
             .spacing = entry_bytes,
             .group = depth},
      lock_table_(Rings::locks_max * sizeof(Entry)),
      rings_(depth, cells_) {}

Station::~Station() {
  if (generation() == made_in_) {
    stop();
    return;
  }
  // A fork's child: the threads are the parent's.
  for (auto& servant : servants_) static_cast<void>(servant.release());
  static_cast<void>(watchdog_.release());
}

Station::Seat& Station::seat(unsigned number) {
  return seats_.of(number, [&] {
    auto& domain = *reinterpret_cast<Hardware::Domain*>(memory_.data());
    return Seat{Port(domain, number), {.client = number}};
  });
}

Word Station::add() {
  const std::scoped_lock guard(locks_mutex_);
  if (!free_numbers_.empty()) {
    const Word number = free_numbers_.back();
    free_numbers_.pop_back();
    return number;
  }
  if (next_number_ + 1 >= Rings::locks_max) {
    throw Error(Status::no_memory, "a server has at most 1,048,574 locks: start another one");
  }
  return next_number_++;
}

void Station::open(Word number, AnyLock* lock) {
  entry(number).lock.store(lock, std::memory_order_release);
}

void Station::remove(Word number) {
  const Word count = cells_.global(0).value.load(std::memory_order_acquire);
  for (unsigned client = 0; client < count; ++client) {
    for (unsigned at = 0; at < depth; ++at) {
      for (;;) {
        const Word seen = cells_.of(client, at).value.load(std::memory_order_acquire);
        if (seen == 0 || Rings::lock_of(seen) != number) break;
        sched_yield();
      }
    }
  }
  while (entry(number).held.value.load(std::memory_order_acquire) != 0) sched_yield();
  const std::scoped_lock guard(locks_mutex_);
  free_numbers_.push_back(number);
}

void Station::start(const ServerOptions& options) {
  std::unique_lock lock(roles_);
  if (!servants_.empty()) throw Error(Status::busy, "this server runs already");
  options_ = options;
  cpus_ = options.cpus;
  if (cpus_.empty()) cpus_ = {pick_cpu()};
  stopping_ = false;
  watching_ = true;
  wanted_ = 0;
  at_work_ = 1;
  try {
    add_servant();
    watchdog_ = std::make_unique<std::thread>([this] { watch(); });
  } catch (...) {
    stopping_ = true;
    lock.unlock();
    for (const auto& servant : servants_) servant->thread.join();
    servants_.clear();
    at_work_ = 0;
    throw;
  }
  count_servers(cpus_, 1);
  server_cell().value.store(1, std::memory_order_release);
}

void Station::apply_options(std::thread& thread) {
  const cpu_set_t mask = mask_of(cpus_);
  const int error = pthread_setaffinity_np(thread.native_handle(), sizeof mask, &mask);
  if (error != 0) {
    throw Error(Status::invalid, std::string("the server cannot be bound there: ") +
                                     std::strerror(error) + "; name CPUs this process may use");
  }
  if (!options_.realtime) return;
  sched_param priority{};
  priority.sched_priority = sched_get_priority_min(SCHED_FIFO);
  realtime_granted_ = pthread_setschedparam(thread.native_handle(), SCHED_FIFO, &priority) == 0;
}

/// With roles_ locked. The new thread is counted as at work.
void Station::add_servant() {
  auto servant = std::make_unique<Servant>();
  Servant& self = *servant;
  // It begins by locking roles_: everything here is done by then.
  self.thread = std::thread([this, &self] { serve(self); });
  servants_.push_back(std::move(servant));
  ++counters_.threads;
  apply_options(self.thread);
}

void Station::place(const std::vector<unsigned>& cpus) {
  const std::scoped_lock lock(roles_);
  if (cpus.empty()) throw Error(Status::invalid, "a server is placed on one CPU or more");
  const std::vector<unsigned> before = cpus_;
  cpus_ = cpus;
  try {
    for (const auto& servant : servants_) apply_options(servant->thread);
  } catch (const Error&) {
    cpus_ = before;
    for (const auto& servant : servants_) apply_options(servant->thread);
    throw;
  }
  if (servants_.empty()) return;
  count_servers(before, ~0U);
  count_servers(cpus, 1);
}

void Station::serve(Servant& self) {
  { const std::scoped_lock made(roles_); }
  this_thread.serving = this;
  this_thread.servant = &self;
  this_thread.error = &errno;
  Port port(*reinterpret_cast<Hardware::Domain*>(memory_.data()), 0);
  unsigned idle = 0;
  std::int64_t idle_since_ns = 0;
  for (;;) {
    if (at_work_.load(std::memory_order_relaxed) != 1 ||
        !self.counted.load(std::memory_order_relaxed) ||
        stopping_.load(std::memory_order_relaxed)) {
      if (!remains(self)) return;
    }
    if (pass(self, port)) {
      idle = 0;
    } else {
      rest(port, idle, idle_since_ns);
    }
  }
}

/// False if the thread is to end. A surplus thread waits here until it is wanted.
bool Station::remains(Servant& self) {
  std::unique_lock lock(roles_);
  if (!self.counted) {
    self.counted = true;
    ++at_work_;
  }
  if (!stopping_ && at_work_ == 1) return true;
  self.counted = false;
  --at_work_;
  ++idle_spares_;
  spares_.wait(lock, [&] { return wanted_ > 0 || stopping_; });
  --idle_spares_;
  if (wanted_ == 0) return false;
  --wanted_;
  self.counted = true;  // in at_work_ since replace()
  return true;
}

/// With roles_ locked: nobody is at work, and somebody has to be.
void Station::replace() {
  ++at_work_;
  ++counters_.handovers;
  if (idle_spares_ > wanted_) {
    ++wanted_;
    spares_.notify_one();
    return;
  }
  try {
    add_servant();
  } catch (const std::exception&) {
    // No thread can be made now: the watchdog tries again, or somebody comes back.
    --at_work_;
  }
}

void Station::enter_blocking() {
  auto& self = *static_cast<Servant*>(this_thread.servant);
  const std::scoped_lock lock(roles_);
  if (!self.counted) return;
  self.counted = false;
  if (--at_work_ == 0) replace();
}

void Station::leave_blocking() {
  auto& self = *static_cast<Servant*>(this_thread.servant);
  const std::scoped_lock lock(roles_);
  if (self.counted) return;
  self.counted = true;
  ++at_work_;
}

void Station::watch() {
  std::unique_lock lock(roles_);
  while (watching_) {
    watchdog_wake_.wait_for(lock, asleep_ ? watchdog_idle_period : watchdog_period);
    if (!watching_) return;
    for (std::size_t i = 0; i < servants_.size(); ++i) {  // replace() may add one
      Servant& servant = *servants_[i];
      const std::uint64_t progress = servant.progress.load(std::memory_order_relaxed);
      const bool stuck = progress % 2 != 0 && progress == servant.seen;
      servant.seen = progress;
      if (!stuck || !servant.counted) continue;
      servant.counted = false;
      --at_work_;
      if (at_work_ == 0) ++counters_.by_watchdog;
    }
    if (at_work_ == 0 && !stopping_) replace();
  }
}

bool Station::pass(Servant& self, Port& port) {
  bool found = false;
  const Word count = cells_.global(0).value.load(std::memory_order_acquire);
  for (unsigned client = 0; client < count; ++client) {
    const Word request = rings_.pending(port, client);
    if (request != 0 && execute_for(self, port, client, request)) found = true;
  }
  return found;
}

/// Requests of whatever lock has this number: known when one is executed, which is while it lives.
class Station::ServerWork : public Work {
 public:
  ServerWork(const Board& board, const Entry& entry) noexcept
      : Work({}, board, nullptr), entry_(entry) {}
  void run(Port& port, unsigned slot) noexcept {
    lock_ = entry_.lock.load(std::memory_order_acquire);
    Work::run(port, slot);
  }

 private:
  const Entry& entry_;
};

bool Station::execute_for(Servant& self, Port& port, unsigned client, Word request) {
  const Word number = Rings::lock_of(request);
  const locks::Desk<Port> lock = desk(number);
  if (!lock.take(port)) return false;
  ServerWork work(board_, entry(number));
  const std::uint64_t progress = self.progress.load(std::memory_order_relaxed);
  unsigned executed = 0;
  for (; executed < batch_max; ++executed) {
    self.progress.store(progress + 2 * executed + 1, std::memory_order_relaxed);
    if (!rings_.serve(port, client, number, work)) break;
  }
  self.progress.store(progress + 2 * executed, std::memory_order_relaxed);
  lock.give(port);
  return executed != 0;
}

bool Station::any_pending(Port& port) {
  const Word count = cells_.global(0).value.load(std::memory_order_acquire);
  for (unsigned client = 0; client < count; ++client) {
    if (rings_.pending(port, client) != 0) return true;
  }
  return false;
}

/// Pending, or being executed.
bool Station::any_unfinished(Port& port) {
  const Word count = cells_.global(0).value.load(std::memory_order_acquire);
  for (unsigned client = 0; client < count; ++client) {
    if (rings_.next(port, client).value.load(std::memory_order_acquire) != 0) return true;
  }
  return false;
}

/// Between passes that found nothing: polls, then yields, then sleeps.
void Station::rest(Port& port, unsigned& idle, std::int64_t& idle_since_ns) {
  if (++idle < idle_polls) return relax();
  if (idle == idle_polls) idle_since_ns = now_ns();
  sched_yield();
  if (idle % 16 != 0 || now_ns() - idle_since_ns < idle_before_sleep_ns) return;
  FutexLot lot(false);
  lot.set_slice(lot.longest_slice_ns());
  asleep_ = true;
  sleep_on_bell(lot, bell_,
                [&] { return stopping_.load(std::memory_order_relaxed) || any_pending(port); });
  asleep_ = false;
  if (any_pending(port)) {
    idle = 0;
    watchdog_wake_.notify_one();
    return;
  }
  idle = idle_polls;  // a slice is over: back to sleep after one look
  idle_since_ns = 0;
}

void Station::wake() noexcept {
  bell_.bell.fetch_add(1, std::memory_order_relaxed);
  FutexLot(false).unpark_all(bell_.bell);
}

void Station::stop() {
  {
    const std::scoped_lock lock(roles_);
    if (servants_.empty() || stopping_) return;
  }
  if (this_thread.serving == this) {
    throw Error(Status::invalid, "a section cannot stop the server that executes it");
  }
  // From here on clients help themselves; what they posted before is seen below.
  server_cell().value.store(0, std::memory_order_release);
  FutexLot(false).heavy_fence();
  Port port(*reinterpret_cast<Hardware::Domain*>(memory_.data()), 0);
  while (any_unfinished(port)) {
    ring_bell();
    sched_yield();
  }
  end_threads();
}

void Station::end_threads() {
  std::vector<std::unique_ptr<Servant>> ending;
  {
    const std::scoped_lock lock(roles_);
    stopping_ = true;
    watching_ = false;
  }
  wake();
  spares_.notify_all();
  watchdog_wake_.notify_all();
  watchdog_->join();
  // Without the watchdog only sections that enter_blocking() make threads, and those are ending.
  for (std::size_t i = 0;; ++i) {
    Servant* servant = nullptr;
    {
      const std::scoped_lock lock(roles_);
      if (i >= servants_.size()) break;
      servant = servants_[i].get();
    }
    servant->thread.join();
  }
  const std::scoped_lock lock(roles_);
  servants_.clear();
  at_work_ = 0;
  count_servers(cpus_, ~0U);
}

ServerCounters Station::counters() const {
  const std::scoped_lock lock(roles_);
  ServerCounters all = counters_;
  for (const auto& servant : servants_) {
    all.executed += servant->progress.load(std::memory_order_relaxed) / 2;
  }
  return all;
}

std::string Station::describe() const {
  const ServerCounters c = counters();
  const std::scoped_lock lock(roles_);
  std::string text = "on CPU";
  for (const unsigned cpu : cpus_) text += " " + std::to_string(cpu);
  text += "; " + std::to_string(c.executed) + " sections executed, " + std::to_string(c.threads) +
          " threads made, " + std::to_string(c.handovers) + " handovers (" +
          std::to_string(c.by_watchdog) + " by the watchdog)";
  if (options_.realtime) {
    text += realtime_granted_ ? "; SCHED_FIFO" : "; SCHED_FIFO refused by the system";
  }
  return text;
}

std::shared_ptr<Station> default_station() {
  // Never destroyed: threads that use it may end after main does.
  static auto* const station = new std::shared_ptr<Station>(std::make_shared<Station>());
  return *station;
}

}  // namespace muster::delegation
