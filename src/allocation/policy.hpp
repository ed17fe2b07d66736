// SPDX-License-Identifier: BSD-3-Clause
// What RCLAwareMalloc does at a moment, as one word, and what comes next when servers start or
// close [P17, steps 1-6]. Pure. How the paper's steps are read: doc/placement.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

namespace muster::allocation {

/// A heap: arenas whose memory is treated alike. Of default allocation there is one, and one of
/// each NUMA node that has been the servers'.
using HeapNumber = std::uint16_t;
inline constexpr HeapNumber default_heap = 1;  // 0 is nobody's
inline constexpr unsigned numa_nodes_max = 1024;
inline constexpr unsigned heaps_max = default_heap + 1 + numa_nodes_max;

constexpr HeapNumber heap_of_numa(unsigned numa_os_index) {
  return static_cast<HeapNumber>(default_heap + 1 + numa_os_index);
}
constexpr std::optional<unsigned> numa_of_heap(HeapNumber heap) {
  if (heap <= default_heap) return std::nullopt;
  return heap - default_heap - 1U;
}

struct Policy {
  HeapNumber heap = default_heap;  ///< blocks come from here
  /// What was allocated before the first server has moved to it, and what of it is not there yet
  /// comes to lie there too.
  bool older_follow = false;
  /// A freed block of another heap must not be handed out again from the cache of the thread that
  /// freed it: its pages may lie elsewhere.
  bool strict = false;
  std::uint32_t epoch = 1;

  /// Where this heap's pages to come are to lie; nothing: as by default.
  constexpr std::optional<unsigned> numa_for(HeapNumber owner) const {
    return owner == heap || (owner == default_heap && older_follow) ? numa_of_heap(heap)
                                                                    : std::nullopt;
  }

  static constexpr std::uint64_t strict_bit = std::uint64_t{1} << 17;
  constexpr std::uint64_t word() const {
    return std::uint64_t{epoch} << 32 | (strict ? strict_bit : 0) |
           std::uint64_t{older_follow} << 16 | heap;
  }
  static constexpr Policy of(std::uint64_t word) {
    return {static_cast<HeapNumber>(word & 0xFFFF), (word >> 16 & 1) != 0, (word & strict_bit) != 0,
            static_cast<std::uint32_t>(word >> 32)};
  }
};

/// The NUMA node that all servers share, if there are servers and they do.
constexpr std::optional<unsigned> shared_numa(std::span<const unsigned> servers) {
  if (servers.empty()) return std::nullopt;
  const bool shared =
      std::all_of(servers.begin(), servers.end(), [&](unsigned n) { return n == servers[0]; });
  return shared ? std::optional(servers[0]) : std::nullopt;
}

/// The servers share `numa`, or have no NUMA node in common. `first`: until now there was none.
/// `others`: heaps beside the default one and that of `numa` have been used.
constexpr Policy next_policy(const Policy& now, std::optional<unsigned> numa, bool first,
                             bool others) {
  Policy next{.epoch = now.epoch + 1};
  if (!numa) return next;
  next.heap = heap_of_numa(*numa);
  next.older_follow = first;
  next.strict = !first || others;
  return next;
}

}  // namespace muster::allocation
