// SPDX-License-Identifier: BSD-3-Clause
// Where servers, working threads and memory go by NUMA node: RCLLockInitNUMA and
// RCLHierarchicalAffinity [PS18, Algorithms 1 and 2], and what RCLAwareMalloc decides [P17].
//
// The decisions are pure functions of the tree and of who sits where; class Placer keeps count. How
// the papers' listings are read, where they contradict themselves: doc/placement.md.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "placement/core_tree.hpp"

namespace muster {

/// To which NUMA node the next server goes, of those with a core that hosts none: the one with the
/// most cores that host servers, or with the fewest. The first of equals.
enum class ServerPolicy { pack, spread };
std::string_view policy_name(ServerPolicy policy);
/// Throws Error(Status::unknown_name) listing the valid ones.
ServerPolicy parse_policy(std::string_view text);

/// Who sits where, by core.
struct Occupancy {
  std::vector<unsigned> servers;
  std::vector<unsigned> threads;        ///< working threads
  std::optional<unsigned> last_shared;  ///< where a server last joined another one
  explicit Occupancy(unsigned cores) : servers(cores), threads(cores) {}
};

/// RCLLockInitNUMA's core for the next server [PS18, Algorithm 1, lines 22-33]. One core stays free
/// for working threads: when at most one is left, servers share, round robin over the cores that
/// host some; if none does, the first core. O(cores).
unsigned choose_server_core(const CoreTree& tree, const Occupancy& now, ServerPolicy policy);

/// The same for a server that is to take nobody's core: none that hosts a server or is `taken` (by
/// core). Nothing if there is none. O(cores).
std::optional<unsigned> choose_spare_core(const CoreTree& tree, const Occupancy& now,
                                          ServerPolicy policy, const std::vector<bool>& taken);

/// RCLHierarchicalAffinity's core for the next working thread [PS18, Algorithm 2]: of the cores
/// with the fewest threads the nearest to the server on core `near`, else to the first server. No
/// core that hosts a server, unless all do. Nothing where there is no server. O(cores).
std::optional<unsigned> choose_thread_core(const CoreTree& tree, const Occupancy& now,
                                           std::optional<unsigned> near = std::nullopt);

/// The NUMA node (position in tree.numa_nodes()) that all servers share, if there are servers and
/// they do, and it has memory.
std::optional<unsigned> servers_numa(const CoreTree& tree, const Occupancy& now);

/// What RCLAwareMalloc does with a block [P17, steps 1-4].
struct BlockDecision {
  std::optional<unsigned> numa;  ///< the servers' NUMA node; nothing: allocate as by default
  bool remember = false;         ///< no server yet: the block migrates when the first one comes
};
BlockDecision decide_block(const CoreTree& tree, const Occupancy& now);

/// What a change of the servers means for memory [P17, steps 5, 6; PS18, Algorithm 1, lines 19-21].
struct MemoryDecision {
  enum class Binding { keep, bind, lift } binding = Binding::keep;
  std::optional<unsigned> numa;  ///< where to, if `bind`; position in tree.numa_nodes()
  bool migrate = false;          ///< move the remembered blocks there, and forget them
};

/// Keeps count of servers and threads. Not thread-safe: its owner locks.
class Placer {
 public:
  explicit Placer(CoreTree tree) : tree_(std::move(tree)), now_(tree_.cores()) {}

  const CoreTree& tree() const { return tree_; }
  const Occupancy& now() const { return now_; }

  struct Server {
    unsigned core = 0;
    MemoryDecision memory;
  };
  /// RCLLockInitNUMA, up to the call of the default initialisation with this core.
  Server add_server(ServerPolicy policy);
  /// RCLLockInitDefault: the caller names the core. Throws Error(Status::invalid).
  Server add_server_at(unsigned core);
  /// Throws Error(Status::invalid) if no server is there.
  MemoryDecision remove_server(unsigned core);

  /// RCLHierarchicalAffinity: counted until remove_thread(). `near`: the core of the server that
  /// the thread's locks use, if known. Throws Error(Status::invalid) if no server is there.
  std::optional<unsigned> add_thread(std::optional<unsigned> near = std::nullopt);
  /// The same for `count` threads at once, in O(cores + count) where threads are spread evenly.
  std::vector<unsigned> add_threads(unsigned count, std::optional<unsigned> near = std::nullopt);
  /// Throws Error(Status::invalid) if no thread is there.
  void remove_thread(unsigned core);

 private:
  const std::vector<unsigned>& candidates(std::optional<unsigned> near);
  MemoryDecision change_servers(unsigned core, int by);

  CoreTree tree_;
  Occupancy now_;
  std::map<unsigned, std::vector<unsigned>> candidates_;  // by server's core; as servers are now
};

}  // namespace muster
