// SPDX-License-Identifier: BSD-3-Clause
// What comes next when servers start and close, held against the placement's pure decisions; and
// the table that says whose memory is where.
#include "allocation/policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <tuple>
#include <vector>

#include "allocation/region_map.hpp"
#include "harness.hpp"
#include "placement/placer.hpp"

namespace muster::allocation {
namespace {

using test::Random;
using ::testing::ElementsAre;
using Binding = MemoryDecision::Binding;

TEST(Policy, IsWhatThePlacementDecides) {
  const CoreTree tree(Topology::from_synthetic("package:2 numa:2 core:3 pu:1"));
  Placer placer(tree);
  Random random(test::case_seed());
  SCOPED_TRACE(test::replay_command());
  Policy policy;
  unsigned servers_before = 0;
  unsigned bound = 0;
  unsigned lifted = 0;
  for (unsigned step = 0; step < 2000; ++step) {
    std::vector<unsigned> cores;  // of each server
    for (unsigned core = 0; core < tree.cores(); ++core) {
      cores.insert(cores.end(), placer.now().servers[core], core);
    }
    const bool closes = !cores.empty() && random.below(3) < cores.size();
    const MemoryDecision decision =
        closes ? placer.remove_server(cores[random.below(static_cast<unsigned>(cores.size()))])
               : placer.add_server_at(random.below(tree.cores())).memory;
    std::vector<unsigned> numa_nodes;
    for (unsigned core = 0; core < tree.cores(); ++core) {
      numa_nodes.insert(numa_nodes.end(), placer.now().servers[core],
                        *tree.numa_nodes()[tree.numa_of(core)].os_index);
    }
    const auto shared = shared_numa(numa_nodes);
    Policy next = policy;
    if (numa_of_heap(policy.heap) != shared) {
      next = next_policy(policy, shared, servers_before == 0, random.one_in(2));
    }
    const bool changed = next.epoch != policy.epoch;
    ASSERT_EQ(changed, decision.binding != Binding::keep);
    ASSERT_EQ(changed && next.heap == default_heap, decision.binding == Binding::lift);
    ASSERT_EQ(changed && next.older_follow, decision.migrate);
    const auto block = decide_block(tree, placer.now());
    ASSERT_EQ(numa_of_heap(next.heap),
              block.numa ? tree.numa_nodes()[*block.numa].os_index : std::nullopt);
    bound += decision.binding == Binding::bind ? 1 : 0;
    lifted += decision.binding == Binding::lift ? 1 : 0;
    policy = next;
    servers_before = static_cast<unsigned>(numa_nodes.size());
  }
  EXPECT_GT(bound, 50U);
  EXPECT_GT(lifted, 50U);
}

TEST(Policy, MemoryFollowsTheServersOnlyWhileTheyAreTogether) {
  const Policy first = next_policy({}, 3, true, false);
  EXPECT_EQ(first.numa_for(heap_of_numa(3)), 3U);
  EXPECT_EQ(first.numa_for(default_heap), 3U);  // migrated
  EXPECT_EQ(first.numa_for(heap_of_numa(2)), std::nullopt);
  EXPECT_FALSE(first.strict);
  const Policy lifted = next_policy(first, std::nullopt, false, true);
  EXPECT_EQ(lifted.numa_for(heap_of_numa(3)), std::nullopt);
  EXPECT_EQ(lifted.numa_for(default_heap), std::nullopt);
  const Policy again = next_policy(lifted, 2, false, true);
  EXPECT_EQ(again.numa_for(heap_of_numa(2)), 2U);
  EXPECT_EQ(again.numa_for(default_heap), std::nullopt);
  EXPECT_TRUE(again.strict);
}

using Stretch = std::tuple<std::uintptr_t, std::size_t, unsigned>;

std::vector<Stretch> runs_of(const RegionMap& map) {
  std::vector<Stretch> runs;
  map.each_run([&](const std::byte* first, std::size_t bytes, RegionMap::Owner owner) {
    runs.emplace_back(reinterpret_cast<std::uintptr_t>(first), bytes, owner);
  });
  return runs;
}

const void* at(std::uintptr_t number) { return reinterpret_cast<const void*>(number); }

TEST(RegionMap, KnowsWhoseMemoryIsWhere) {
  constexpr std::size_t granule = RegionMap::granule;
  constexpr std::uintptr_t end_of_leaf = std::uintptr_t{1} << 33;
  const auto map = std::make_unique<RegionMap>();
  EXPECT_TRUE(runs_of(*map).empty());
  ASSERT_TRUE(map->add(at(end_of_leaf - granule), 2 * granule, 7));  // over two leaves
  ASSERT_TRUE(map->add(at(end_of_leaf + granule), granule, 7));
  ASSERT_TRUE(map->add(at(end_of_leaf + 2 * granule), granule, 8));
  ASSERT_TRUE(map->add(at(end_of_leaf + 4 * granule), granule, 8));
  EXPECT_THAT(runs_of(*map), ElementsAre(Stretch{end_of_leaf - granule, 3 * granule, 7},
                                         Stretch{end_of_leaf + 2 * granule, granule, 8},
                                         Stretch{end_of_leaf + 4 * granule, granule, 8}));
  EXPECT_EQ(map->owner(at(end_of_leaf - granule - 1)), 0);
  EXPECT_EQ(map->owner(at(end_of_leaf - granule)), 7);
  EXPECT_EQ(map->owner(at(end_of_leaf + 2 * granule - 1)), 7);
  EXPECT_EQ(map->owner(at(end_of_leaf + 2 * granule)), 8);
  EXPECT_EQ(map->owner(at(end_of_leaf + 3 * granule)), 0);
  EXPECT_EQ(map->owner(nullptr), 0);
}

TEST(RegionMap, EndsWithTheAddresses) {
  constexpr std::size_t granule = RegionMap::granule;
  constexpr std::uintptr_t end = std::uintptr_t{1} << 48;
  const auto map = std::make_unique<RegionMap>();
  EXPECT_TRUE(map->add(at(end - granule), granule, 2));
  EXPECT_FALSE(map->add(at(end - granule), 2 * granule, 3));
  EXPECT_EQ(map->owner(at(end - 1)), 2);
  EXPECT_EQ(map->owner(at(end)), 0);
  EXPECT_EQ(map->owner(at(~std::uintptr_t{0})), 0);
}

}  // namespace
}  // namespace muster::allocation
