// SPDX-License-Identifier: BSD-3-Clause
// Who sits where in the papers' lock experiments: the server, the working threads, and the array's
// memory; and all ways to do it that differ by more than the machine's symmetry [PS18, Figs. 6, 7].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/core_tree.hpp"

namespace muster::sim {

/// Cores are positions in Topology::cores().
struct LockPlacement {
  std::optional<unsigned> server;  ///< where the lock has one
  std::vector<unsigned> threads;   ///< each thread's core; several may share one
  unsigned memory = 0;             ///< the array's NUMA node: position in CoreTree::numa_nodes()
};

/// For people: the cores in the tree's order, `S` the server, `w` a thread (a digit: so many), `.`
/// nobody; a blank between caches, `|` between what is outermost; `m` behind the NUMA node of the
/// array: "Sww.m|w...".
std::string placement_text(const CoreTree& tree, const LockPlacement& placement);

/// The same for placements that are each other's image under a symmetry of the tree, and else
/// different.
std::string placement_key(const CoreTree& tree, const LockPlacement& placement);

struct WeightedPlacement {
  LockPlacement placement;
  double weight = 0;  ///< its share, if each thread's core were drawn by lot; they add up to 1
};

/// Every placement of so many threads on a core each, none on the server's, that is distinct up to
/// symmetry, the first of each in the order of cores. Where the server and the memory are free too
/// they take every position. Throws Error(invalid) for more threads than that leaves cores, or for
/// more than `placements_max` placements of as many threads, or of fewer.
inline constexpr std::size_t placements_max = 20'000;
std::vector<WeightedPlacement> all_placements(const CoreTree& tree, unsigned threads,
                                              std::optional<unsigned> server = std::nullopt,
                                              std::optional<unsigned> memory = std::nullopt);

/// How many they are of no thread, of one, ... of so many, without a look at each.
std::vector<double> count_placements(const CoreTree& tree, unsigned threads,
                                     std::optional<unsigned> server = std::nullopt,
                                     std::optional<unsigned> memory = std::nullopt);

/// [P17]'s placement, which stands for [PS18, Fig. 4], too: the array where the first core is, the
/// server on the first core of the second NUMA node (of the second package or cache, where there is
/// one NUMA node), threads on the other cores in their order, and again from the first one on.
LockPlacement apart_placement(const CoreTree& tree, unsigned threads);

/// RCLHierarchicalAffinity's cores for threads around a server [PS18, Algorithm 2].
LockPlacement hierarchical_placement(const CoreTree& tree, unsigned threads, unsigned server,
                                     unsigned memory);

/// The same placement once the lock's server is there, whose core is given: RCLLockInitNUMA binds
/// memory before the array is allocated [PS18, Algorithm 1].
LockPlacement with_bound_memory(const CoreTree& tree, LockPlacement placement);

/// RCLLockInitNUMA with the core that it chooses; the thread that sat there goes to where the
/// server was [PS18, Algorithm 1].
LockPlacement with_chosen_server(const CoreTree& tree, LockPlacement placement);

/// RCLAwareMalloc: the array is allocated before the lock's server is there [P17].
LockPlacement with_aware_memory(const CoreTree& tree, LockPlacement placement);

/// A placement from a text, a line each: `server CORE`, `allocator CORE` (the array is on its NUMA
/// node), `threads CORE,CORE,...`, taken in turn if there are more threads; `#` begins a comment.
/// `source` names it in errors. Throws Error(invalid).
LockPlacement parse_placement(const std::string& text, const std::string& source,
                              const CoreTree& tree, unsigned threads);

}  // namespace muster::sim
