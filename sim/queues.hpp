// SPDX-License-Identifier: BSD-3-Clause
// The two places where requests queue besides a line's own order. Each serves one at a time, in
// the order in which they are asked.
#pragma once

#include <algorithm>
#include <cstddef>
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
class ReadQueues {
 public:
  ReadQueues(std::size_t lines, unsigned dies, Time occupancy)
      : free_at_(lines * dies, 0), dies_(dies), occupancy_(occupancy) {}

  Time serve(std::size_t line, unsigned die, Time asked) {
    Time& free_at = free_at_[line * dies_ + die];
    const Time begin = std::max(asked, free_at);
    free_at = begin + occupancy_;
    return begin;
  }
  /// The die's copy is on its way: nobody there is served before `from`.
  void fill(std::size_t line, unsigned die, Time from) {
    Time& free_at = free_at_[line * dies_ + die];
    free_at = std::max(free_at, from + occupancy_);
  }
  Time free_at(std::size_t line, unsigned die) const { return free_at_[line * dies_ + die]; }

 private:
  std::vector<Time> free_at_;
  unsigned dies_;
  Time occupancy_;
};

}  // namespace muster::sim
