// SPDX-License-Identifier: BSD-3-Clause
#include "topology/placement.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "describe.hpp"
#include "topology/topology.hpp"

namespace muster {
namespace {

using Groups = std::vector<std::vector<unsigned>>;

// The groups of one level; none if the tree has no such level.
Groups groups_of(const GroupTree& tree, const std::string& name) {
  Groups result;
  for (const GroupLevel& level : tree.levels) {
    if (level.name != name) continue;
    for (const Group& group : level.groups) result.push_back(group.members);
  }
  return result;
}

GroupTree tree_of(const Topology& topology, const std::vector<PuSet>& bindings) {
  const Grouping grouping = group_ranks(topology.place(bindings, topology.active_levels()));
  EXPECT_EQ(grouping.status, Status::ok) << grouping.reason;
  EXPECT_EQ(check_tree(grouping.tree), "");
  return grouping.tree;
}

// 2 packages x 2 NUMA nodes x 32 cores, an L2 each, L3 = NUMA node.
Topology kunpeng() { return Topology::from_synthetic("package:2 numa:2 l3:1 l2:32 core:1 pu:1"); }

TEST(GroupRanks, DeclinesUnboundRanks) {
  const Topology topology = kunpeng();
  const ActiveLevels active = topology.active_levels();
  for (const PuSet& unbound : {PuSet{}, topology.pus()}) {
    const Grouping one = group_ranks(topology.place({{0}, unbound, {2}}, active));
    EXPECT_EQ(one.status, Status::declined);
    EXPECT_NE(one.reason.find("rank 1 may run on any core"), std::string::npos) << one.reason;
    EXPECT_TRUE(one.tree.levels.empty());
  }
  const Grouping many = group_ranks(topology.place({{}, {}, {}, {1}, {}}, active));
  EXPECT_NE(many.reason.find("ranks 0-2,4 may"), std::string::npos) << many.reason;
}

TEST(GroupRanks, OneCoreIsABinding) {
  const Topology topology = Topology::from_synthetic("core:1 pu:2");
  const GroupTree tree = tree_of(topology, {{0, 1}, {0}, {1}});
  ASSERT_EQ(tree.levels.size(), 1U);
  EXPECT_EQ(groups_of(tree, "MACHINE"), (Groups{{0, 1, 2}}));
}

TEST(GroupRanks, NobodyIsInvalid) {
  try {
    group_ranks(Placement{});
    FAIL() << "no participants were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::invalid);
  }
}

TEST(GroupRanks, CoresOutsideOfAllUnitsAreLifted) {
  Placement placement;
  placement.participants = 4;
  placement.levels = {"NUMA", "PACKAGE"};
  placement.unit = {{0, kOutside, 0, kOutside}, {0, 0, 0, 0}};
  const Grouping grouping = group_ranks(placement);
  EXPECT_EQ(groups_of(grouping.tree, "NUMA"), (Groups{{0, 2}}));
  EXPECT_EQ(groups_of(grouping.tree, "PACKAGE"), (Groups{{0, 1, 3}}));
}

TEST(Mapping, NumaAndSocketAsInThePaper) {
  const Topology topology = kunpeng();
  const std::vector<PuSet> numa = topology.map_ranks(Mapping::numa, 256);
  const std::vector<PuSet> socket = topology.map_ranks(Mapping::socket, 256);
  for (unsigned rank = 0; rank < 256; ++rank) {
    EXPECT_EQ(numa[rank], PuSet{rank % 4 * 32 + rank / 4 % 32}) << rank;
    EXPECT_EQ(socket[rank], PuSet{rank % 2 * 64 + rank / 2 % 64}) << rank;
  }
}

TEST(Mapping, SmtSiblingsAreOneCore) {
  const Topology topology = Topology::from_synthetic("package:2 core:2 pu:2");
  EXPECT_EQ(topology.map_ranks(Mapping::core, 2)[1], (PuSet{2, 3}));
}

TEST(Mapping, EveryCoreOnceALap) {
  for (const char* const machine : {"memoryless-dies.xml", "hybrid-6p8e.xml", "uneven-numa.xml"}) {
    const Topology topology = test::machine(machine);
    const auto cores = static_cast<unsigned>(topology.cores().size());
    for (const Mapping mapping : {Mapping::core, Mapping::numa, Mapping::socket}) {
      const std::vector<PuSet> bindings = topology.map_ranks(mapping, cores + 3);
      PuSet taken;
      for (unsigned rank = 0; rank < cores; ++rank) {
        EXPECT_FALSE(taken.intersects(bindings[rank])) << machine << " rank " << rank;
        taken |= bindings[rank];
      }
      EXPECT_EQ(taken, topology.pus());
      for (unsigned rank = 0; rank < 3; ++rank) EXPECT_EQ(bindings[cores + rank], bindings[rank]);
    }
  }
}

TEST(Mapping, Names) {
  EXPECT_EQ(parse_mapping("NUMA"), Mapping::numa);
  EXPECT_EQ(parse_mapping("package"), Mapping::socket);
  EXPECT_EQ(mapping_name(Mapping::socket), "socket");
  try {
    parse_mapping("hwthread");
    FAIL() << "an unknown mapping was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::unknown_name);
    EXPECT_NE(std::string(error.what()).find("core, numa, socket"), std::string::npos);
  }
}

TEST(Locality, ReadsThePapersString) {
  const Locality locality = parse_locality("SK0:L31:L232:L132:CR32:HT32:NM1");
  EXPECT_FALSE(locality.unbound);
  EXPECT_EQ(locality.package, std::vector{0U});
  EXPECT_EQ(locality.l3, std::vector{1U});
  for (const auto& ids : {locality.l2, locality.l1, locality.core, locality.pu}) {
    EXPECT_EQ(ids, std::vector{32U});
  }
  EXPECT_EQ(locality.numa, std::vector{1U});
}

TEST(Locality, ReadsRangesAndLists) {
  const Locality locality = parse_locality("hwloc:SK0:L30:L20-1,4:HT0-3,8:XX7:NM0");
  EXPECT_EQ(locality.l2, (std::vector<unsigned>{0, 1, 4}));
  EXPECT_EQ(locality.pu, (std::vector<unsigned>{0, 1, 2, 3, 8}));
  EXPECT_TRUE(locality.core.empty());
  EXPECT_TRUE(parse_locality("").unbound);
  EXPECT_TRUE(parse_locality("hwloc:").unbound);
}

TEST(Locality, RefusesWhatIsNone) {
  for (const char* const text : {"SK", "SK0:", "0-3", "SKx", "SK0:L3", "SK0::NM0", "SK0:L2 1-0",
                                 "SK0:SK1", "XX0", "SK-1", "SK0;NM0", ":SK0", "SK99999999999"}) {
    try {
      parse_locality(text);
      FAIL() << "accepted '" << text << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Status::invalid) << text;
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
}

TEST(Locality, OnATopologyNamesItsPus) {
  // The OS numbers NUMA nodes' cores in turn here: the second core of the first has PUs 4 and 44.
  const Topology topology = test::machine("xeon-snc2-2s.txt");
  EXPECT_EQ(topology.bindings_of({"CR1:HT2-3"})[0], (PuSet{4, 44}));
  EXPECT_EQ(topology.bindings_of({"CR1"})[0], (PuSet{4, 44}));
  EXPECT_TRUE(topology.bindings_of({""})[0].empty());
  EXPECT_THROW(topology.bindings_of({"HT80"}), Error);
  EXPECT_THROW(topology.bindings_of({"CR40"}), Error);
  EXPECT_THROW(topology.bindings_of({"SK0"}), Error);
}

TEST(Bindings, EachIsReadAsWhatItIs) {
  const Topology topology = Topology::from_synthetic("package:2 core:4 pu:1");
  EXPECT_EQ(topology.read_bindings({"0", "CR3:HT3", "", "none", " 4-7 "}),
            (std::vector<PuSet>{{0}, {3}, {}, {}, {4, 5, 6, 7}}));
  for (const char* const wrong : {"xyz", "8", "0-8", "0-", "HT8", "-1"}) {
    try {
      topology.read_bindings({"0", wrong});
      FAIL() << "accepted '" << wrong << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Status::invalid) << wrong;
      EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace muster
