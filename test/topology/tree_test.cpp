// SPDX-License-Identifier: BSD-3-Clause
#include "topology/tree.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace muster {
namespace {

GroupTree fourteen() {  // [K22, Fig. 3]
  return {14,
          {{"NUMA", {{{0, 4, 8, 12}}, {{1, 5, 9, 13}}, {{2, 6, 10}}, {{3, 7, 11}}}},
           {"PACKAGE", {{{0, 1}}, {{2, 3}}}},
           {"MACHINE", {{{0, 2}}}}}};
}

TEST(CheckTree, AcceptsGoodTrees) {
  EXPECT_EQ(check_tree(fourteen()), "");
  EXPECT_EQ(check_tree({1, {{"MACHINE", {{{0}}}}}}), "");
  // Ranks 2 and 3 lifted, and the leader 4 lifted over a level.
  EXPECT_EQ(
      check_tree(
          {6, {{"L2", {{{0, 1}}, {{4, 5}}}}, {"NUMA", {{{0, 2}}}}, {"MACHINE", {{{0, 3, 4}}}}}}),
      "");
}

struct BadTree {
  const char* fault;  // what check_tree() must say
  GroupTree tree;
};

TEST(CheckTree, NamesEachFault) {
  const std::vector<BadTree> trees = {
      {"no participants", {0, {{"MACHINE", {{{0}}}}}}},
      {"no levels", {1, {}}},
      {"has no groups", {2, {{"NUMA", {}}, {"MACHINE", {{{0, 1}}}}}}},
      {"has no members", {2, {{"MACHINE", {{{}}}}}}},
      {"has rank 2, but ranks end at 1", {2, {{"MACHINE", {{{0, 1, 2}}}}}}},
      {"do not ascend at rank 1", {2, {{"MACHINE", {{{0, 1, 1}}}}}}},
      {"do not ascend at rank 0", {2, {{"MACHINE", {{{1, 0}}}}}}},
      {"rank 1 is in two groups of level 0",
       {3, {{"NUMA", {{{0, 1}}, {{1, 2}}}}, {"MACHINE", {{{0}}}}}}},
      {"rank 1 is in two groups of level 0",
       {3, {{"NUMA", {{{1, 2}}, {{1}}}}, {"MACHINE", {{{0, 1}}}}}}},
      {"has rank 1, which does not lead its group below",
       {3, {{"NUMA", {{{0, 1}}}}, {"MACHINE", {{{0, 1, 2}}}}}}},
      {"ordered by leader", {4, {{"NUMA", {{{2, 3}}, {{0, 1}}}}, {"MACHINE", {{{0, 2}}}}}}},
      {"the last level (NUMA) has 2 groups", {4, {{"NUMA", {{{0, 1}}, {{2, 3}}}}}}},
      {"led by rank 1", {3, {{"NUMA", {{{0, 2}}}}, {"MACHINE", {{{1}}}}}}},
      {"rank 2 is in no group that leads", {3, {{"MACHINE", {{{0, 1}}}}}}},
      {"rank 2 is in no group that leads",
       {4, {{"NUMA", {{{0, 1}}, {{2, 3}}}}, {"MACHINE", {{{0}}}}}}},
  };
  for (const BadTree& bad : trees) {
    EXPECT_NE(check_tree(bad.tree).find(bad.fault), std::string::npos)
        << "expected '" << bad.fault << "', got '" << check_tree(bad.tree) << "'";
  }
}

TEST(FormatNumbers, ShortensRuns) {
  EXPECT_EQ(format_numbers({}), "");
  EXPECT_EQ(format_numbers({7}), "7");
  EXPECT_EQ(format_numbers({0, 1}), "0,1");
  EXPECT_EQ(format_numbers({0, 1, 2, 8}), "0-2,8");
  EXPECT_EQ(format_numbers({0, 4, 8, 12}), "0,4,8,12");
  EXPECT_EQ(format_numbers({0, 4, 8, 12, 16}), "0-16:4");
  EXPECT_EQ(format_numbers({3, 5, 6, 7, 10, 20, 30, 40, 50}), "3,5-7,10-50:10");
}

TEST(FormatTree, DrawsIt) {
  EXPECT_EQ(format_tree(fourteen()),
            "MACHINE  leader 0  members 0,2\n"
            "├─ PACKAGE  leader 0  members 0,1\n"
            "│  ├─ NUMA  leader 0  members 0,4,8,12\n"
            "│  └─ NUMA  leader 1  members 1,5,9,13\n"
            "└─ PACKAGE  leader 2  members 2,3\n"
            "   ├─ NUMA  leader 2  members 2,6,10\n"
            "   └─ NUMA  leader 3  members 3,7,11\n");
}

}  // namespace
}  // namespace muster
