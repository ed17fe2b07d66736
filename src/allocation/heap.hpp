// SPDX-License-Identifier: BSD-3-Clause
// Heaps: jemalloc arenas whose extents come from hooks of ours, which map memory, note to which
// heap it belongs, and have it allocated where the policy wants it. An arena is used by several
// threads where there are more of them than arenas, as jemalloc does by itself; a heap has up to
// 256, made when they are needed.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "allocation/policy.hpp"
#include "allocation/region_map.hpp"

namespace muster::allocation {

inline constexpr unsigned arenas_max = 256;  ///< of a heap

/// The policy in force, Policy::word().
extern constinit std::atomic<std::uint64_t> current;

/// All memory of all heaps.
extern constinit RegionMap regions;

/// Whether binding can be of use here: this process may have memory of several NUMA nodes, and the
/// kernel says so. Set once, before the first arena is made.
extern constinit std::atomic<bool> binds;

/// Binding that the kernel refused.
struct Refusals {
  std::atomic<std::uint64_t> regions;
  std::atomic<int> first_error;
  void note(int error) noexcept;
};
extern constinit Refusals refusals;

/// jemalloc's number of an arena, which is made if it is not there; nothing if it cannot be.
/// Thread-safe.
std::optional<unsigned> arena(HeapNumber heap, unsigned slot) noexcept;

/// Whether a heap has any, and how many.
bool heap_used(HeapNumber heap) noexcept;
unsigned arenas_made(HeapNumber heap) noexcept;

/// In a fork's child: an arena that another thread of the parent was making is lost.
void nobody_makes_arenas() noexcept;

}  // namespace muster::allocation
