// SPDX-License-Identifier: BSD-3-Clause
// What a station's steward sees, and what is done on its advice.
#include <time.h>

#include <algorithm>
#include <bit>
#include <new>

#include "delegation/cpus.hpp"
#include "delegation/station.hpp"
#include "machine/error.hpp"

namespace muster::delegation {
namespace {

/// With 1 and 4 ms `auto` had 1.0 to 1.2 of its sections on two CPUs, where no server comes. A CPU
/// that is lost for a slice of 3 ms shows less in longer looks.
constexpr std::int64_t between_looks_ns = 10'000'000;

std::int64_t clock_now_ns(clockid_t clock) {
  timespec now{};  // 0 where there is no such clock
  clock_gettime(clock, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace

void Station::employ(const locks::Steward& steward,
                     std::function<void(locks::Steward::Look&)> impose) {
  const std::scoped_lock lock(stewarding_);
  steward_ = steward;
  impose_ = std::move(impose);
}

void Station::consider() noexcept {
  const std::int64_t at_ns = now_ns();
  if (at_ns < next_look_ns_.load(std::memory_order_relaxed)) return;
  const NoCancellation whole;
  const std::unique_lock lock(stewarding_, std::try_to_lock);
  if (!lock || at_ns < next_look_ns_.load(std::memory_order_relaxed)) return;
  next_look_ns_.store(at_ns + between_looks_ns, std::memory_order_relaxed);
  if (has_server()) return;  // the watchdog looks
  const bool has_ended =
      House::within(crew().roles, [this] { return term_.is(house_, Term::stopped); });
  if (!has_ended) return;
  try {
    std::vector<int> thread_ids;
    if (look(at_ns, thread_ids) != locks::Steward::Advice::start) return;
    const auto near = steward_->near();
    const auto place = Places::instance().add_spare_server(thread_ids, near);
    if (!place) {
      const bool is_known = steward_->stand_back().who == locks::StandBack::who_is_elsewhere;
      return steward_->no_server(
          at_ns, is_known ? "no core is free near the data, where clients go first"
                 : near   ? "no core is free on the NUMA node where it was to be tried"
                          : "no core is free of clients");
    }
    start_at(*place, {});
  } catch (const std::exception& error) {
    steward_->no_server(at_ns, "a server could not be started", error.what());
  }
}

/// It looks another time if there is no memory, or while a client starts a server and tells the
/// observer, which may take long.
bool Station::is_to_leave() {
  const std::unique_lock lock(stewarding_, std::try_to_lock);
  if (!lock) return false;
  try {
    std::vector<int> thread_ids;
    return look(now_ns(), thread_ids) == locks::Steward::Advice::leave;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// With stewarding_ locked, as the next one.
locks::Steward::Advice Station::look(std::int64_t at_ns, std::vector<int>& thread_ids) {
  const locks::Steward::Advice advice = steward_->look(see(at_ns, thread_ids));
  const Word back = steward_->stand_back().word();
  if (back != 0) Places::instance();  // all of them need that: it is read here, once
  back_cell().value.store(back, std::memory_order_relaxed);
  return advice;
}

/// `thread_ids`: of the clients that had sections since the last look.
locks::Steward::Look Station::see(std::int64_t at_ns, std::vector<int>& thread_ids) {
  locks::Steward::Look look{.now_ns = at_ns};
  for (unsigned word = 0; word < SeatMachine::words; ++word) {
    // Those whose threads have ended since the last look, too, but not all that there ever were:
    // after 8,000 threads these took 1.6 ms.
    const SeatMachine::Bits used = SeatMachine::used(word);
    auto bits = used | std::exchange(looked_at_[word], used);
    for (; bits != 0; bits &= bits - 1) {
      Seat* const seat = seats_.find(word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
      if (seat == nullptr) continue;
      look.add(seat->pace, seat->pace_seen, seat->cpu.load(std::memory_order_relaxed));
      const std::uint64_t meets = seat->meets.value();
      meets_ += meets - std::exchange(seat->meets_seen, meets);
      const std::uint64_t sections = seat->sections.value();
      const std::uint64_t before = std::exchange(seat->sections_seen, sections);
      sections_ += sections - before;
      if (sections == before) continue;
      const int client = seat->thread_id.load(std::memory_order_relaxed);
      if (client != 0) thread_ids.push_back(client);
    }
  }
  look.sections = sections_;
  look.meets = meets_;
  // A thread has a seat for each depth of its sections.
  std::sort(thread_ids.begin(), thread_ids.end());
  thread_ids.erase(std::unique(thread_ids.begin(), thread_ids.end()), thread_ids.end());
  look.clients = static_cast<unsigned>(thread_ids.size());
  look.usable_cpus = cpus_of_process();
  const auto passed_ns = static_cast<double>(at_ns - std::exchange(last_look_ns_, at_ns));
  const std::int64_t process_ns = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
  const std::int64_t server_ns = server_cpu_ns();
  // A server's threads take their clocks along when they end.
  const std::int64_t by_server_ns =
      std::max<std::int64_t>(0, server_ns - std::exchange(server_cpu_ns_, server_ns));
  const std::int64_t by_all_ns = process_ns - std::exchange(process_cpu_ns_, process_ns);
  look.threads_cpus = static_cast<double>(by_all_ns - by_server_ns) / passed_ns;
  // Who wakes counts its sleep before it says, with this mutex, that it is awake.
  const bool is_asleep = House::within(
      crew().roles, [this] { return crew().asleep.load(std::memory_order_relaxed) != 0; });
  const std::uint64_t sleeps = sleeps_.load(std::memory_order_relaxed);
  if (std::exchange(sleeps_seen_, sleeps) == sleeps && !is_asleep) {
    look.server_cpus = static_cast<double>(by_server_ns) / passed_ns;
  }
  if (const auto at = has_server() ? core() : std::nullopt) {
    const Places& places = Places::instance();
    if (const auto& fastest = steward_->fastest()) {
      look.server_is_near = places.is_near(at, fastest->place);
    }
    look.server = places.cpu_of(*at);
    if (steward_->may_move() && !Places::has_observer()) {  // else memory moves with it
      std::vector<unsigned> tried{*look.server};
      for (const auto& server : steward_->tried()) tried.push_back(server.place);
      look.untried = places.spare_cpu_far_from(tried, thread_ids);
    }
  }
  if (impose_) impose_(look);
  return look;
}

std::int64_t Station::server_cpu_ns() const {
  const std::scoped_lock lock(crew().roles);
  std::int64_t sum_ns = 0;
  for (const auto& servant : servants_) sum_ns += servant->cpu_ns();
  return sum_ns;
}

std::int64_t Station::Servant::cpu_ns() const { return clock ? clock_now_ns(*clock) : 0; }

std::string Station::reason() const {
  require_own_process();
  const std::scoped_lock lock(stewarding_);
  if (!steward_) return "";
  return steward_->why() + "; started " + std::to_string(steward_->starts()) + " times, left " +
         std::to_string(steward_->leaves()) + " times";
}

const char* Station::cause(bool has_server) const {
  require_own_process();
  const std::scoped_lock lock(stewarding_);
  if (steward_) return steward_->cause();
  return has_server ? "the program has started it, or an rcl lock"
                    : "none was started, or it was stopped";
}

}  // namespace muster::delegation
