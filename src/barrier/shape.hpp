// SPDX-License-Identifier: BSD-3-Clause
// What every barrier has in common. A barrier `B<M>` is a view of shared cells and gives each
// participant a private `Ticket`:
//
//   static constexpr Traits traits;
//   static Layout layout(const Shape&);   the cells it needs; all are 0 at first
//   B(const Shape&, M::Cells);            copies what it needs of the shape
//   void prepare(M&) const;               once, by one participant, if first_episode != 0
//   Ticket ticket(rank) const;            private state; may allocate: `wait` does not
//   bool wait(M&, Ticket&) const;         one episode; false if it gave up
//   bool arrive(M&, Ticket&) const;       the halves, where traits.splits: arrive never waits
//   bool depart(M&, Ticket&) const;
#pragma once

#include <string_view>

#include "barrier/schedule.hpp"
#include "machine/machine.hpp"
#include "topology/tree.hpp"

namespace muster {

constexpr unsigned participants_max = 65536;

struct Shape {
  unsigned participants = 1;           ///< to participants_max
  unsigned radix = 2;                  ///< of trees of counters: children a counter; 2 or more
  Word first_episode = 0;              ///< where the counters start; tests start near 2^32
  const GroupTree* groups = nullptr;   ///< for the `topo` family; nullptr: one group of all
  const Schedule* schedule = nullptr;  ///< nullptr: composed from the groups
};

struct Layout {
  unsigned global_cells = 0;
  unsigned cells_per_rank = 0;
  unsigned words = 0;  ///< of plain data, the barrier's
};

/// Who runs `all_arrived()`, between the last arrival and the first departure.
enum class Champion : std::uint8_t { nobody, rank0, last_to_arrive };

struct Traits {
  std::string_view name;
  Champion champion;
  bool splits;            ///< arrive() and depart() exist
  std::string_view cost;  ///< remote stores per episode and the longest chain of them
  std::string_view source;
  unsigned radix = 0;  ///< where none is asked for; 0: it has no such tree
};

/// Rounds of a logarithmic barrier: the least k with 2^k >= participants.
constexpr unsigned rounds_of(unsigned participants) {
  unsigned rounds = 0;
  while ((std::uint64_t{1} << rounds) < participants) ++rounds;
  return rounds;
}

}  // namespace muster
