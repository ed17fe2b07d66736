// SPDX-License-Identifier: BSD-3-Clause
// Plain data on the modelled machine: arrays that critical sections walk. Each core has a private
// cache, each die a shared one, both of finite size, set-associative, least recently used out
// first; each die has memory of its own with a latency and a bandwidth. Cells, which participants
// wait for, are line.hpp's: they always fit. Dies of one NUMA node share its memory. Arrays may be
// far larger than this machine's own memory: only lines that were touched are kept account of.
//
// Left out: dirty lines written back take no bandwidth, a store never stalls its core, and a die's
// shared cache does not hold what its cores' private ones brought from another core's.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/geometry.hpp"
#include "sim/mechanism.hpp"
#include "sim/time.hpp"

namespace muster::sim {

/// A cache of `lines` lines in sets of `ways`; the number of sets is any.
class Cache {
 public:
  struct Entry {
    std::uint32_t line = ~0U;
    std::uint32_t version = 0;  ///< of the line when it was brought here
    std::uint32_t used = 0;     ///< turn of its last use
    bool prefetched = false;    ///< and not asked for since
    Time ready_at = 0;
  };

  Cache(std::size_t lines, unsigned ways);
  /// Null if it is not here.
  const Entry* peek(std::uint32_t line) const;
  /// As peek(), and uses it.
  Entry* find(std::uint32_t line);
  /// In place of the least recently used of its set, or of itself.
  Entry& insert(std::uint32_t line);

 private:
  std::size_t sets_;
  unsigned ways_;
  std::uint32_t turn_ = 0;
  std::vector<Entry> entries_;
};

/// What a participant's accesses found.
struct DataCounts {
  std::uint64_t accesses = 0;
  std::uint64_t private_misses = 0;
  std::uint64_t shared_misses = 0;  ///< of its own die's cache
  std::uint64_t memory = 0;         ///< lines from memory, prefetched ones included
  std::uint64_t far_memory = 0;     ///< of these, from another NUMA node's
};

class DataMemory {
 public:
  DataMemory(const Geometry& geometry, const Parameters& parameters, Mechanisms mechanisms);

  /// `bytes` more, in the memory next to a die; the address of the first. Throws Error(no_memory)
  /// beyond 2^32 lines, or if its caches are too large for this process.
  std::uint64_t allocate(std::uint64_t bytes, unsigned home_die);

  /// When an access at `at` is over. Accesses have to come in the order of their times, but for
  /// what hits a private cache.
  Time access(unsigned participant, std::uint64_t address, bool writes, Time at);

  /// Whether it would hit the private cache: nobody else has to know.
  bool is_private(unsigned participant, std::uint64_t address) const;

  const DataCounts& counts(unsigned participant) const { return counts_[participant]; }

 private:
  static constexpr std::uint16_t several = 0xffff;
  struct LineState {
    std::uint32_t version = 0;       ///< raised when another writer takes the line
    std::uint16_t writer = several;  ///< whose copy is the only one
    std::uint16_t home = 0;          ///< a die next to its memory
  };

  LineState& state_of(std::uint32_t line);
  std::uint32_t version_of(std::uint32_t line) const;
  Time fetch(unsigned participant, std::uint32_t line, Time at, bool prefetch);
  Time nearest_copy(unsigned die, std::uint32_t line, std::uint32_t version) const;
  Time from_memory(unsigned participant, unsigned home, Time at);

  const Geometry& geometry_;
  bool caches_;
  bool prefetch_;
  unsigned line_bytes_;
  Time hit_;
  Time memory_;
  Time memory_far_;  ///< with the way there; 0: the way and memory_
  Time transfer_;    ///< a line through a memory's controller
  std::size_t private_lines_;
  std::size_t shared_lines_;
  unsigned private_ways_;
  unsigned shared_ways_;
  std::uint64_t lines_ = 0;                                       ///< allocated
  std::vector<std::pair<std::uint32_t, std::uint16_t>> regions_;  ///< first line, home
  std::unordered_map<std::uint32_t, LineState> touched_;
  std::vector<Cache> private_;
  std::vector<Cache> shared_;
  std::vector<Time> controller_free_at_;  ///< by home
  std::vector<DataCounts> counts_;
};

}  // namespace muster::sim
