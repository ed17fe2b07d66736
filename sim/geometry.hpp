// SPDX-License-Identifier: BSD-3-Clause
// Where the participants are and how far apart: what the engine knows of a machine's shape.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "sim/time.hpp"

namespace muster::sim {

/// A set of dies, one bit each.
__extension__ using DieSet = unsigned __int128;
inline constexpr unsigned dies_max = 128;
constexpr DieSet die_bit(unsigned die) { return DieSet{1} << die; }
/// The lowest of a set that is not empty.
constexpr unsigned first_die(DieSet dies) {
  const auto low = static_cast<std::uint64_t>(dies);
  return static_cast<unsigned>(low != 0
                                   ? std::countr_zero(low)
                                   : 64 + std::countr_zero(static_cast<std::uint64_t>(dies >> 64)));
}

/// "Die" is whatever shares the last-level cache and its coherence agent: the machine file's
/// domain.
class Geometry {
 public:
  /// Cores of one unit below the die (SMT siblings, an L2 cluster) are nearer to each other.
  struct Inner {
    std::vector<std::uint16_t> unit_of;  ///< by participant
    Time latency;
  };

  unsigned participants() const { return static_cast<unsigned>(die_of_.size()); }
  unsigned dies() const { return dies_; }
  unsigned die_of(unsigned participant) const { return die_of_[participant]; }

  /// One way between two dies, or inside one.
  Time between(unsigned die, unsigned other) const { return between_[die * dies_ + other]; }

  /// One way between two cores of one die.
  Time inside(unsigned participant, unsigned other) const {
    for (const Inner& level : inner_) {
      if (level.unit_of[participant] == level.unit_of[other]) return level.latency;
    }
    return between(die_of(participant), die_of(participant));
  }

  /// The nearest die of a set that is not empty; of equals the one with the lowest number.
  unsigned nearest(DieSet dies, unsigned die) const {
    unsigned best = 0;
    Time least = INT64_MAX;
    for (; dies != 0; dies &= dies - 1) {
      const auto other = first_die(dies);
      if (between(die, other) < least) {
        least = between(die, other);
        best = other;
      }
    }
    return best;
  }

  /// How far the farthest die of a set is; 0 if it is empty.
  Time farthest(DieSet dies, unsigned die) const {
    Time most = 0;
    for (; dies != 0; dies &= dies - 1) {
      const Time latency = between(die, first_die(dies));
      most = latency > most ? latency : most;
    }
    return most;
  }

  /// Whether two dies are next to the same memory, as dies of one NUMA node are.
  bool share_memory(unsigned die, unsigned other) const {
    return die == other || (!memory_of_.empty() && memory_of_[die] == memory_of_[other]);
  }

  unsigned dies_ = 1;
  std::vector<std::uint16_t> die_of_;  ///< by participant
  std::vector<Time> between_;          ///< dies x dies
  std::vector<Inner> inner_;           ///< bottom up
  std::vector<unsigned> memory_of_;    ///< by die; empty: each has its own
};

}  // namespace muster::sim
