// SPDX-License-Identifier: BSD-3-Clause
// What a server has done so far, in numbers and in words.
#include <string>

#include "delegation/station.hpp"
#include "machine/format.hpp"

namespace muster::delegation {

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

}  // namespace muster::delegation
