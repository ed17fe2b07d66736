// SPDX-License-Identifier: BSD-3-Clause
// The tree of [PS18, section 2] from a topology.
#include "placement/core_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "test/topology/describe.hpp"

namespace muster::test {
namespace {

using ::testing::ElementsAre;

CoreTree tree_of(const std::string& description) {
  return CoreTree(Topology::from_synthetic(description));
}

// [PS18, Fig. 2] has 8 cores, 2 NUMA nodes, and c_23 = 2, p(3, 4) = 2: pairs of cores below NUMA
// nodes of four.
TEST(CoreTree, CountsAndParentsOfThePapersFigure) {
  const CoreTree tree = tree_of("package:2 numa:1 l2:2 core:2 pu:1");
  EXPECT_THAT(tree.levels(), ElementsAre("MACHINE", "NUMA", "L2"));
  ASSERT_EQ(tree.elements().size(), 7U);
  EXPECT_EQ(tree.element(0).size(), 8U);
  for (unsigned core = 0; core < 8; ++core) {
    const Element& pair = tree.element(tree.element_of(core));
    EXPECT_EQ(pair.level, 2U);
    EXPECT_EQ(pair.size(), 2U);
    const Element& numa = tree.element(pair.parent);
    EXPECT_EQ(numa.level, 1U);
    EXPECT_EQ(numa.size(), 4U);
    EXPECT_EQ(numa.parent, 0U);
    EXPECT_EQ(tree.numa_of(core), core / 4);
  }
  EXPECT_THAT(tree.numa_nodes()[1].cores, ElementsAre(4, 5, 6, 7));
}

TEST(CoreTree, OutwardsIsNearestFirst) {
  const CoreTree tree = tree_of("package:2 numa:1 l2:2 core:2 pu:1");
  using Itself = CoreTree::Itself;
  EXPECT_THAT(tree.outwards_from(0, Itself::left_out), ElementsAre(1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(tree.outwards_from(6, Itself::left_out), ElementsAre(7, 4, 5, 0, 1, 2, 3));
  EXPECT_THAT(tree.outwards_from(7, Itself::included), ElementsAre(6, 7, 4, 5, 0, 1, 2, 3));
  EXPECT_TRUE(tree_of("core:1 pu:1").outwards_from(0, Itself::left_out).empty());
  EXPECT_THAT(tree_of("core:1 pu:1").outwards_from(0, Itself::included), ElementsAre(0));
}

// What the constructor promises of any machine.
TEST(CoreTree, IsATree) {
  for (const std::string& file : machine_files()) {
    SCOPED_TRACE(file);
    const CoreTree tree(machine(file));
    std::vector<unsigned> sorted = tree.order();
    std::sort(sorted.begin(), sorted.end());
    std::vector<unsigned> all(tree.cores());
    std::iota(all.begin(), all.end(), 0U);
    EXPECT_EQ(sorted, all);
    for (unsigned number = 1; number < tree.elements().size(); ++number) {
      const Element& element = tree.element(number);
      const Element& parent = tree.element(element.parent);
      EXPECT_LT(element.parent, number);
      EXPECT_GT(element.level, parent.level);
      EXPECT_LT(element.level, tree.levels().size());
      EXPECT_LT(element.first, element.end);
      EXPECT_GE(element.first, parent.first);
      EXPECT_LE(element.end, parent.end);
    }
    for (unsigned at = 0; at < tree.cores(); ++at) {
      const Element& element = tree.element(tree.element_of(tree.order()[at]));
      EXPECT_TRUE(element.first <= at && at < element.end);
    }
    unsigned cores = 0;
    for (const NumaCores& numa : tree.numa_nodes()) {
      cores += static_cast<unsigned>(numa.cores.size());
    }
    EXPECT_EQ(cores, tree.cores());
  }
}

}  // namespace
}  // namespace muster::test
