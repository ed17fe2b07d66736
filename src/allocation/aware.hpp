// SPDX-License-Identifier: BSD-3-Clause
// RCLAwareMalloc [P17] over jemalloc: each thread allocates from an arena of the heap that the
// policy names, and goes over to another one at its first allocation after a change.
//
// jemalloc does the rest, and its threads' caches with it: what a block costs here beyond its own
// price is one comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "allocation/heap.hpp"
#include "memory/migration.hpp"

namespace muster::allocation {

struct Thread {
  std::uint64_t seen;  ///< the policy that it has followed, Policy::word(); 0: none yet
  unsigned slot;       ///< of its arena in each heap, plus 1
};
// In the static block: the dynamic one is allocated at first use, by malloc.
extern thread_local constinit Thread self __attribute__((tls_model("initial-exec")));

/// Goes over to the heap of the policy in force.
void settle() noexcept;

/// Before every allocation.
inline void follow_policy() noexcept {
  if (self.seen != current.load(std::memory_order_relaxed)) [[unlikely]]
    settle();
}

/// Whether this block must not pass through the freeing thread's cache (Policy::strict).
inline bool apart(const void* block) noexcept {
  const std::uint64_t word = current.load(std::memory_order_relaxed);
  return (word & Policy::strict_bit) != 0 && regions.owner(block) != Policy::of(word).heap;
}

/// The NUMA nodes of all servers, by the system's numbers, repeated or not. When it returns, memory
/// is where the policy wants it. Thread-safe.
void set_servers(std::span<const unsigned> servers) noexcept;

struct Counters {
  Policy policy;
  bool servers = false;           ///< there are some
  bool servers_together = false;  ///< on one NUMA node, though perhaps without memory for us
  std::uint64_t bindings = 0;
  std::uint64_t lifts = 0;
  Migration migration;
  std::uint64_t regions_refused = 0;
  int first_refusal = 0;             ///< errno of binding
  std::uint64_t bytes = 0;           ///< address space of all heaps
  std::uint64_t bytes_bound = 0;     ///< of these, to a NUMA node
  std::uint64_t threads_adrift = 0;  ///< times that one got no arena, and allocates as by default
};
Counters counters() noexcept;
std::string explain();

}  // namespace muster::allocation
