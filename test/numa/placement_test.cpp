// SPDX-License-Identifier: BSD-3-Clause
// Placements on the live kernel: servers on one NUMA node, threads where the pure function says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "pages_of.hpp"
#include "placement/placer.hpp"

namespace muster::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

/// Where a thread is that binds itself to that core.
unsigned numa_seen_on(const Topology& topology, unsigned core) {
  unsigned numa = ~0U;
  std::thread([&] {
    if (bind_to_cpu(topology.cores()[core].pus.front())) numa = numa_of_this_thread();
  }).join();
  return numa;
}

TEST(Placement, ServersArePackedOnOneNode) {
  const Topology topology = Topology::this_machine();
  Placer placer{CoreTree(topology)};
  placer.add_server_at(topology.core_of(6));
  placer.add_server(ServerPolicy::pack);
  std::vector<unsigned> seen;
  for (unsigned core = 0; core < placer.tree().cores(); ++core) {
    if (placer.now().servers[core] != 0) seen.push_back(numa_seen_on(topology, core));
  }
  EXPECT_THAT(seen, ElementsAre(2, 2));
}

TEST(Placement, ServersAreSpreadOverAllNodes) {
  const Topology topology = Topology::this_machine();
  Placer placer{CoreTree(topology)};
  std::vector<unsigned> seen;
  for (unsigned server = 0; server < 4; ++server) {
    seen.push_back(numa_seen_on(topology, placer.add_server(ServerPolicy::spread).core));
  }
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3));
}

// The server's NUMA node, then its package, then the machine.
TEST(Placement, ThreadsAreNearTheServer) {
  const Topology topology = Topology::this_machine();
  Placer placer{CoreTree(topology)};
  placer.add_server_at(topology.core_of(7));
  std::vector<unsigned> cpus;
  std::vector<unsigned> seen;
  for (const unsigned core : placer.add_threads(7)) {
    cpus.push_back(topology.cores()[core].pus.front());
    seen.push_back(numa_seen_on(topology, core));
  }
  EXPECT_THAT(cpus, ElementsAre(5, 4, 6, 0, 2, 1, 3));
  EXPECT_THAT(seen, ElementsAre(3, 2, 2, 0, 0, 1, 1));
}

}  // namespace
}  // namespace muster::test
