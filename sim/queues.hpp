// SPDX-License-Identifier: BSD-3-Clause
// The two places where requests queue besides a line's own order. Each serves one at a time, in
// the order in which they are asked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/time.hpp"

namespace muster::sim {

/// A die's coherence agent: every transaction that enters, leaves or reaches the die takes its
/// time.
class DieAgents {
 public:
  DieAgents(unsigned dies, Time occupancy) : free_at_(dies, 0), occupancy_(occupancy) {}

  /// When the agent of `die` begins with a transaction that asks at `asked`.
  Time serve(unsigned die, Time asked) {
    const Time begin = std::max(asked, free_at_[die]);
    free_at_[die] = begin + occupancy_;
    return begin;
  }

 private:
  std::vector<Time> free_at_;
  Time occupancy_;
};

/// Each die hands out copies of one line one after another: what makes a hot flag slow to read.
/// Only a few dies have readers of a line at a time, so a line has room for four queues, and gets
/// one a die when that is too few: tables of lines times dies would not fit the host's caches.
class ReadQueues {
 public:
  ReadQueues(std::size_t lines, unsigned dies, Time occupancy)
      : lines_(lines), dies_(dies), occupancy_(occupancy) {}

  Time serve(std::size_t line, unsigned die, Time asked, Time now) {
    Time& free_at = queue(lines_[line], die, now);
    const Time begin = std::max(asked, free_at);
    free_at = begin + occupancy_;
    return begin;
  }
  /// The die's copy is on its way: nobody there is served before `from`.
  void fill(std::size_t line, unsigned die, Time from, Time now) {
    Time& free_at = queue(lines_[line], die, now);
    free_at = std::max(free_at, from + occupancy_);
  }
  /// 0 for a queue that nobody has asked lately.
  Time free_at(std::size_t line, unsigned die) const {
    const Few& few = lines_[line];
    if (few.all != none) return all_[few.all + die];
    for (unsigned n = 0; n < room; ++n) {
      if (few.die[n] == die) return few.free_at[n];
    }
    return 0;
  }

 private:
  static constexpr unsigned room = 4;
  static constexpr std::uint32_t none = ~0U;
  struct alignas(64) Few {
    Time free_at[room] = {};
    std::uint16_t die[room] = {0xffff, 0xffff, 0xffff, 0xffff};
    std::uint32_t all = none;  ///< where the queues of all dies begin
  };

  /// What is free by now is as good as unused: nobody can ask for an earlier time any more.
  Time& queue(Few& few, unsigned die, Time now) {
    if (few.all != none) return all_[few.all + die];
    unsigned unused = room;
    for (unsigned n = 0; n < room; ++n) {
      if (few.die[n] == die) return few.free_at[n];
      if (few.free_at[n] <= now) unused = n;
    }
    if (unused < room) {
      few.die[unused] = static_cast<std::uint16_t>(die);
      return few.free_at[unused] = 0;
    }
    few.all = static_cast<std::uint32_t>(all_.size());
    all_.resize(all_.size() + dies_, 0);
    for (unsigned n = 0; n < room; ++n) all_[few.all + few.die[n]] = few.free_at[n];
    return all_[few.all + die];
  }

  std::vector<Few> lines_;
  std::vector<Time> all_;
  unsigned dies_;
  Time occupancy_;
};

}  // namespace muster::sim
