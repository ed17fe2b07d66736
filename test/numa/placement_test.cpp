// SPDX-License-Identifier: BSD-3-Clause
// Placements on the live kernel: where servers run, threads are bound, and who is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

#include "muster/lock.hpp"
#include "pages_of.hpp"
#include "topology/topology.hpp"

namespace muster::test {
namespace {

using ::testing::ElementsAre;

/// CPUs that the calling thread may run on, by the kernel.
std::vector<unsigned> cpus_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<unsigned> cpus;
  for (unsigned cpu = 0; cpu < 8; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(Runtime, ServersRunWhereTheyArePacked) {
  std::vector<std::vector<unsigned>> told;
  const auto hear = [](const unsigned* numa_nodes, unsigned count, void* context) {
    static_cast<std::vector<std::vector<unsigned>>*>(context)->emplace_back(numa_nodes,
                                                                            numa_nodes + count);
  };
  ASSERT_EQ(muster_server_set_observer(hear, &told), MUSTER_OK);
  {
    muster::server named("6");
    muster::server packed;
    muster::server spread("spread");
    muster::server* const all[] = {&named, &packed, &spread};
    std::vector<unsigned> seen;
    std::vector<unsigned> cpus;
    for (muster::server* server : all) {
      muster::lock lock("rcl", server);
      lock.execute([&] {
        seen.push_back(numa_of_this_thread());
        for (const unsigned cpu : cpus_of_this_thread()) cpus.push_back(cpu);
      });
    }
    EXPECT_THAT(seen, ElementsAre(2, 2, 0));
    EXPECT_THAT(cpus, ElementsAre(6, 4, 0));
  }
  EXPECT_EQ(muster_server_set_observer(nullptr, nullptr), MUSTER_OK);
  const std::vector<std::vector<unsigned>> expected = {{2}, {2}, {0, 2}, {2}, {2}, {}};
  EXPECT_EQ(told, expected);
}

TEST(Runtime, ThreadsAreBoundAsThePureFunctionSays) {
  muster::server first("7");
  muster::server second("0");
  muster::lock near_first("rcl", &first);
  muster::lock near_second("rcl", &second);
  // By position among the cores, whose order is the machine's, not the CPUs'.
  const Topology topology = Topology::this_machine();
  const unsigned servers[] = {topology.core_of(7), topology.core_of(0)};
  const unsigned near[] = {servers[0], servers[1], servers[1], servers[0],
                           servers[0], servers[1], servers[0], servers[1]};
  std::vector<muster_place> places(8);
  ASSERT_EQ(muster_place_threads(nullptr, servers, 2, near, places.data(), 8), MUSTER_OK);
  std::vector<std::thread> threads;
  std::vector<std::vector<unsigned>> bound(8);
  std::vector<unsigned> numa(8);
  std::atomic<unsigned> placed{0};
  for (unsigned i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      {
        const muster::thread_place place(near[i] == servers[0] ? &near_first : &near_second);
        bound[i] = cpus_of_this_thread();
        numa[i] = numa_of_this_thread();
        ++placed;
        while (placed < 8) sched_yield();
      }
      EXPECT_EQ(cpus_of_this_thread().size(), 8U) << "as before";
    });
    while (placed <= i) sched_yield();  // one after the other, as they are counted
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned i = 0; i < 8; ++i) {
    EXPECT_THAT(bound[i], ElementsAre(places[i].pu)) << i;
    EXPECT_EQ(static_cast<int>(numa[i]), places[i].numa_node) << i;
  }
  // Their places are free again.
  unsigned core = 0;
  EXPECT_EQ(muster_thread_bind(near_first.native_handle(), &core), MUSTER_OK);
  EXPECT_EQ(core, places[0].core);
  muster_thread_unbind();
}

}  // namespace
}  // namespace muster::test
