// SPDX-License-Identifier: BSD-3-Clause
// Which of a server's threads is at work: spares, and the watchdog.
#include <algorithm>
#include <chrono>
#include <exception>

#include "delegation/station.hpp"
#include "delegation/thread.hpp"

namespace muster::delegation {
namespace {

constexpr auto watchdog_period = std::chrono::microseconds(4000);
/// After a handover, then twice that, up to the usual one: who takes over may be blocked as soon.
constexpr auto watchdog_first_period = std::chrono::microseconds(250);
constexpr auto watchdog_idle_period = std::chrono::milliseconds(500);

}  // namespace

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
  ring_bell();  // for what it would have looked at next: who is at work may sleep
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
  Servant* added = nullptr;
  try {
    added = &add_servant();
    const std::string failure = bind(*added, place_.cpus);
    if (!failure.empty()) misplaced_ = failure;  // it serves all the same
  } catch (const std::exception&) {
    if (added != nullptr) return;
    // No thread can be made now: the watchdog tries again, or somebody comes back.
    --at_work_;
    --counters_.handovers;
  }
}

/// With roles_ locked. False if it has before.
bool Station::step_aside(Servant& self) {
  if (!self.counted) return false;
  self.counted = false;
  if (--at_work_ == 0) replace();
  return true;
}

bool Station::enter_blocking() {
  const std::scoped_lock lock(roles_);
  return step_aside(*static_cast<Servant*>(this_thread.servant));
}

void Station::leave_blocking() {
  if (this_thread.servant == nullptr) return;  // a fork's child
  auto& self = *static_cast<Servant*>(this_thread.servant);
  const std::scoped_lock lock(roles_);
  self.counted = true;
  ++at_work_;
  // Who has been at work may have gone to sleep, and leaves the next request to this one.
  if (!asleep_) return;
  asleep_ = false;
  watchdog_wake_.notify_one();
}

void Station::watch() {
  std::unique_lock lock(roles_);
  std::chrono::microseconds period = watchdog_period;
  std::chrono::microseconds since_steward{};
  while (watching_) {
    watchdog_wake_.wait_for(lock, asleep_ ? watchdog_idle_period : period);
    if (!watching_) return;
    since_steward += period;
    const bool handed_over = look_after_servants(period == watchdog_period);
    period = handed_over ? watchdog_first_period : std::min(2 * period, watchdog_period);
    if (!steward_ || phase_ != Phase::serving || since_steward < watchdog_period) continue;
    since_steward = {};
    lock.unlock();
    const bool leaves = is_to_leave();
    lock.lock();
    if (leaves && phase_ == Phase::serving) return leave(lock);
  }
}

/// With roles_ locked: who has been in one section for a whole period, or at sending posts, is
/// blocked there; sooner, if it has had no CPU since the last look. True if a spare took over.
bool Station::look_after_servants(bool whole_period) {
  for (const auto& servant : servants_) {
    if (!servant->counted) continue;
    const std::uint64_t progress = servant->progress.load(std::memory_order_relaxed);
    const bool same = std::exchange(servant->seen, progress) == progress;
    if (progress % Servant::section == 0) continue;
    const std::int64_t cpu_ns = servant->cpu_ns();
    const bool rests = std::exchange(servant->cpu_seen_ns, cpu_ns) == cpu_ns && cpu_ns != 0;
    if (!same || (!whole_period && !rests)) continue;
    servant->counted = false;
    --at_work_;
    if (at_work_ == 0) ++counters_.by_watchdog;
  }
  if (at_work_ != 0 || stopping_) return false;
  replace();
  return true;
}

/// By the watchdog: ends the server and itself. Returns without the lock: who starts the next one
/// has it, and joins this thread.
void Station::leave(std::unique_lock<std::mutex>& roles) {
  phase_ = Phase::leaving;
  roles.unlock();
  Pending pending = close();
  roles.lock();
  while (!pending.are_executed()) {
    watchdog_wake_.wait_for(roles, std::chrono::milliseconds(1));
    look_after_servants(true);
  }
  roles.unlock();
  end_servants();
  has_ended();
}

/// From now on the watchdog looks often. It decides how long it sleeps under the same mutex: either
/// it knows by then, or it is woken.
void Station::rouse_watchdog() {
  const std::scoped_lock lock(roles_);
  asleep_ = false;
  watchdog_wake_.notify_one();
}

}  // namespace muster::delegation
