// SPDX-License-Identifier: BSD-3-Clause
// Moving memory that is in use to another NUMA node, and counting what happened to each page: what
// RCLAwareMalloc does with blocks that are older than the first server [P17, step 6].
#pragma once

#include <cstddef>

namespace muster {

/// Pages of a migration, each counted once.
struct Migration {
  std::size_t moved = 0;
  std::size_t already_there = 0;  ///< and what is beyond the first 1,024 pages of a huge one
  std::size_t not_there_yet = 0;  ///< never touched: whoever does decides where they come to lie
  std::size_t refused = 0;        ///< shared with other processes, locked, no room, ...
  int first_refusal = 0;          ///< errno of the first page that was refused

  std::size_t pages() const { return moved + already_there + not_there_yet + refused; }
  Migration& operator+=(const Migration& other) noexcept;
};

/// Moves the pages that hold [address, address + bytes), those at its ends with whatever else is on
/// them, to a NUMA node, by the system's number for it. Contents stay, also of what other threads
/// write meanwhile. Nothing is said about pages to come: mbind does that. Two system calls a
/// thousand pages, three where some stay; no allocation; thread-safe.
Migration migrate_to_numa(const void* address, std::size_t bytes, unsigned numa_os_index) noexcept;

}  // namespace muster
