// SPDX-License-Identifier: BSD-3-Clause
// How long an episode of a schedule takes on a machine, roughly and at once: what `auto` chooses
// by. The model (sim/) knows more, and takes some hundred times as long; test/sim/fitting_test.cpp
// holds the two together.
#pragma once

#include <cmath>
#include <string_view>
#include <vector>

#include "barrier/schedule.hpp"

namespace muster {

/// What waits and transfers cost on a machine, in nanoseconds: the model's parameters of the same
/// names (doc/model.md).
struct Costs {
  double call = 5;        ///< from one episode to the next; some 250 in an MPI
  double poll_turn = 10;  ///< between two looks; some 240 where an MPI makes progress in between
  double hit = 1.2;
  double load_gap = 2;
  double store_gap = 1;
  double rmw_local = 10;
  double read_occupancy = 15;
  double agent_occupancy = 6;
  double poll_overlap = 3.5;
  unsigned poll_ways = 8;
  double set_fill = 0;
  bool ll_sc = false;
  bool operator==(const Costs&) const = default;
};

/// Where the participants sit.
struct Seats {
  struct Level {
    std::vector<unsigned> unit_of;  ///< by participant; equal ones share a unit of this level
    double ns;  ///< one way between two that share a unit of this level, and of none below it
  };
  std::vector<Level> levels;  ///< bottom up; the last has one unit, the machine
  std::size_t domain = 0;     ///< the level whose units share a cache and what keeps it coherent

  double between(unsigned one, unsigned other) const {
    for (const Level& level : levels) {
      if (level.unit_of[one] == level.unit_of[other]) return level.ns;
    }
    return levels.back().ns;
  }
};

/// Nanoseconds between two episodes; `schedule` is one that check_schedule() accepts, of as many
/// participants as have a seat. What is clearly more than `least_ns` is known less well, and
/// sooner. Deterministic, thread-safe; O(cells log participants).
double estimate_ns(const Schedule& schedule, const Seats& seats, const Costs& costs,
                   double least_ns = HUGE_VAL);

}  // namespace muster
