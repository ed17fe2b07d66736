// SPDX-License-Identifier: BSD-3-Clause
// A barrier as data: for each rank, steps of "await these cells, then store those, then count
// yourself in there". scheduled.hpp runs one on any machine, compose.hpp makes one from a group
// tree, and check_schedule() proves that it is a barrier, however it was made.
#pragma once

#include <string>
#include <vector>

namespace muster {

/// A cell of a schedule: the `index`-th of those that live near a rank.
struct CellAt {
  unsigned rank;
  unsigned index;
  bool operator==(const CellAt&) const = default;
};

/// A flag counts episodes: its one writer stores the episode's number, its readers await it. A
/// counter counts arrivals: each of its `adders` adds one an episode.
struct Step {
  unsigned first_cell;  ///< in Schedule::cells: the awaited flags, the stored ones, the counter
  unsigned awaits;      ///< all of them, as one wait
  unsigned stores;      ///< in this order, after the wait
  unsigned adders;      ///< 0: no counter. Whoever is not its last adder goes on with departures
  bool operator==(const Step&) const = default;
};

/// Plain data without pointers, as it may lie in a segment or a file.
struct Schedule {
  /// A rank's steps: arrivals, then departures.
  struct Program {
    unsigned arrivals;
    unsigned departures;
    unsigned end;
  };
  unsigned cells_per_rank = 0;
  std::vector<Program> programs;  ///< by rank: indices into `steps`
  std::vector<Step> steps;
  std::vector<CellAt> cells;

  unsigned participants() const { return static_cast<unsigned>(programs.size()); }
};

/// Empty if `schedule` is a barrier, else one sentence with the first fault found. It is one if
/// 1. every index is inside its array;
/// 2. each flag is stored once an episode, by one rank, or by whoever completes one counter;
/// 3. each counter has as many adders as it says, each adds once, and all of them go on alike, so
///    that it does not matter who is the last;
/// 4. no order of events leaves somebody waiting for ever;
/// 5. nobody stores before it counts, in what ends at a counter;
/// 6. nobody leaves before everybody has arrived. It follows that no cell runs ahead of a reader by
///    more than one episode.
/// Knows nothing of how schedules are made, but what compose() makes takes O(cells log cells); else
/// one pass for each 64 participants. Thread-safe.
std::string check_schedule(const Schedule& schedule);

}  // namespace muster
