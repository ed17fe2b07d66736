// SPDX-License-Identifier: BSD-3-Clause
// The machine that vm.sh describes, as the live kernel and hwloc show it: levels, groups, leaders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "topology/topology.hpp"

namespace muster::test {
namespace {

using ::testing::ElementsAre;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

TEST(Machine, IsTheOneDescribed) {
  const std::string nodes = "/sys/devices/system/node/";
  EXPECT_EQ(first_line(nodes + "online"), "0-3");
  EXPECT_EQ(first_line(nodes + "node0/cpulist"), "0,2");
  EXPECT_EQ(first_line(nodes + "node3/cpulist"), "5,7");
  EXPECT_EQ(first_line(nodes + "node0/distance"), "10 12 20 22");
  EXPECT_EQ(first_line(nodes + "node1/distance"), "12 10 22 20");
  EXPECT_EQ(first_line(nodes + "node2/distance"), "20 22 10 12");
  EXPECT_EQ(first_line(nodes + "node3/distance"), "22 20 12 10");
}

TEST(Machine, HasTheseLevels) {
  const Topology topology = Topology::this_machine();
  EXPECT_EQ(topology.cores().size(), 8U);
  EXPECT_EQ(topology.numa_nodes(), 4U);
  const ActiveLevels active = topology.active_levels();
  ASSERT_EQ(active.levels.size(), 2U);
  EXPECT_EQ(active.levels[0].name, "NUMA");
  ASSERT_EQ(active.levels[0].units.size(), 4U);
  EXPECT_EQ(active.levels[0].units[0].pus, (PuSet{0, 2}));
  EXPECT_EQ(active.levels[0].units[1].pus, (PuSet{1, 3}));
  EXPECT_EQ(active.levels[0].units[2].pus, (PuSet{4, 6}));
  EXPECT_EQ(active.levels[0].units[3].pus, (PuSet{5, 7}));
  EXPECT_EQ(active.levels[1].name, "PACKAGE");
  ASSERT_EQ(active.levels[1].units.size(), 2U);
  EXPECT_EQ(active.levels[1].units[0].pus, (PuSet{0, 1, 2, 3}));
}

// Rank i on CPU i: neighbours are on different NUMA nodes.
TEST(Machine, GroupsByUnitNotByNumber) {
  const Topology topology = Topology::this_machine();
  std::vector<PuSet> bindings;
  for (unsigned rank = 0; rank < 8; ++rank) bindings.push_back({rank});
  const Grouping grouping = group_ranks(topology.place(bindings, topology.active_levels()));
  ASSERT_EQ(grouping.status, Status::ok) << grouping.reason;
  const std::vector<GroupLevel>& levels = grouping.tree.levels;
  ASSERT_EQ(levels.size(), 3U);
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
