// SPDX-License-Identifier: BSD-3-Clause
// hwloc's topologies, and the mutex that it holds when one begins and ends.
#pragma once

#include <hwloc.h>

#include <memory>

namespace muster {

struct HwlocTopologyDeleter {
  void operator()(hwloc_topology_t topology) const noexcept;
};
using HwlocTopology = std::unique_ptr<hwloc_topology, HwlocTopologyDeleter>;

/// Throws Error: no_memory; busy in a fork's child that cannot have hwloc's mutex.
HwlocTopology make_hwloc_topology();

}  // namespace muster
