// SPDX-License-Identifier: BSD-3-Clause
// The machine that vm.sh describes, as the live kernel and hwloc show it: levels, groups, leaders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/topology.hpp"

namespace muster::test {
namespace {

using ::testing::ElementsAre;

// Rank i on CPU i: neighbours are on different NUMA nodes.
TEST(Machine, GroupsByUnitNotByNumber) {
  const Topology topology = Topology::this_machine();
  std::vector<PuSet> bindings;
  for (unsigned rank = 0; rank < 8; ++rank) bindings.push_back({rank});
  const Grouping grouping = group_ranks(topology.place(bindings, topology.active_levels()));
  ASSERT_EQ(grouping.status, Status::ok) << grouping.reason;
  const std::vector<GroupLevel>& levels = grouping.tree.levels;
  ASSERT_EQ(levels.size(), 3U);
  EXPECT_EQ(levels[0].name, "NUMA");
  EXPECT_EQ(levels[1].name, "PACKAGE");
  ASSERT_EQ(levels[0].groups.size(), 4U);
  EXPECT_THAT(levels[0].groups[0].members, ElementsAre(0, 2));
  EXPECT_THAT(levels[0].groups[1].members, ElementsAre(1, 3));
  EXPECT_THAT(levels[0].groups[2].members, ElementsAre(4, 6));
  EXPECT_THAT(levels[0].groups[3].members, ElementsAre(5, 7));
  ASSERT_EQ(levels[1].groups.size(), 2U);
  EXPECT_THAT(levels[1].groups[0].members, ElementsAre(0, 1));
  EXPECT_THAT(levels[1].groups[1].members, ElementsAre(4, 5));
  EXPECT_THAT(levels[2].groups[0].members, ElementsAre(0, 4));
}

TEST(Machine, MapsRanksByNumaNode) {
  const std::vector<PuSet> bindings = Topology::this_machine().map_ranks(Mapping::numa, 8);
  const std::vector<PuSet> expected = {{0}, {1}, {4}, {5}, {2}, {3}, {6}, {7}};
  EXPECT_EQ(bindings, expected);
}

}  // namespace
}  // namespace muster::test
