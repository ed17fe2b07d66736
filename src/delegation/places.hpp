// SPDX-License-Identifier: BSD-3-Clause
// Where this process's servers and placed threads are: RCLLockInitNUMA and RCLHierarchicalAffinity
// [PS18] at work. The decisions are placement/placer.hpp's; here threads are bound.
//
// The machine is read once, at the first use: this one, as far as the process may use it, or the
// one that MUSTER_TOPOLOGY imposes. On an imposed one everything is decided and counted as if
// threads sat there, and nothing is bound.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "delegation/generation.hpp"
#include "placement/placer.hpp"
#include "topology/topology.hpp"

namespace muster::delegation {

class Places {
 public:
  /// This process's: a fork's child begins anew. Never destroyed. Throws Error: the machine cannot
  /// be read.
  static Places& instance();

  const Topology& topology() const { return topology_; }
  const CoreTree& tree() const { return placer_.tree(); }

  /// A server's place, counted until it is given back.
  struct Server {
    std::optional<unsigned> core;  ///< of tree(); nothing: its CPUs are not on this machine
    PuSet cpus;                    ///< to bind its threads to; empty: they are not bound
  };
  /// RCLLockInitDefault: bound to these CPUs, counted on the core of the first. Without any,
  /// RCLLockInitNUMA.
  Server add_server(ServerPolicy policy, const PuSet& cpus = {});
  /// RCLLockInitNUMA on a core that no server has, nor one of these threads to itself; on the NUMA
  /// node of that CPU, if one is named. Nothing if there is none.
  std::optional<Server> add_spare_server(const std::vector<int>& thread_ids,
                                         std::optional<unsigned> near_cpu = std::nullopt);
  /// A CPU of the core that this would choose on a NUMA node of none of those.
  std::optional<unsigned> spare_cpu_far_from(const std::vector<unsigned>& cpus,
                                             const std::vector<int>& thread_ids) const;
  unsigned cpu_of(unsigned core) const { return topology_.cores()[core].pus.front(); }
  /// Whether a server's core is on the NUMA node of that CPU, or one of them is not known.
  bool is_near(std::optional<unsigned> core, unsigned cpu) const;
  void remove_server(const Server& server);

  /// RCLHierarchicalAffinity: binds the calling thread, near the server on core `near` if there is
  /// one, else near the first; anew if it has a place. Given back when the thread ends. Returns the
  /// core. Throws Error: declined (there is no server), no_memory (as take_seat()), system.
  unsigned place_thread(std::optional<unsigned> near);
  /// Binds the calling thread as it was before; nothing if it has no place.
  static void unplace_thread() noexcept;

  /// The core of tree() on which the calling thread is now; on an imposed machine where it was
  /// placed, else thread `number` is taken to be on core `number`.
  unsigned core_of_this_thread(unsigned number) const;

  /// Called after each change of the servers, one call at a time, with the NUMA nodes of all of
  /// them by the system's numbers, each once, ascending; `no_numa_node` for cores without one. At
  /// once, if there are servers. It must not start, move or stop any. Null: nobody is told. A
  /// fork's child tells the same one: first, at its first use of this, that its parent's servers
  /// are not here.
  using Observer = std::function<void(const std::vector<unsigned>& numa_nodes)>;
  void set_observer(Observer observer);
  static bool has_observer() noexcept;
  static constexpr unsigned no_numa_node = ~0U;
  /// By whoever has changed the servers, once they run or have ended. Nothing without memory.
  void tell_observer();

 private:
  struct Bound;

  Places();

  Server server_on(unsigned core) const;
  /// With the mutex: of those that are not left out, nor bound to by these threads.
  std::optional<unsigned> spare_core(auto is_left_out, const std::vector<int>& thread_ids) const;
  /// Of those that are bound to one.
  void take_cores_of(const std::vector<int>& thread_ids, std::vector<bool>& taken) const;
  std::vector<unsigned> servers_numa_nodes() const;

  const Topology topology_;
  const Birth birth_;
  mutable std::mutex mutex_;  // of placer_
  Placer placer_;
  std::mutex telling_;  // of whom to tell, who is told by one at a time
};

}  // namespace muster::delegation
