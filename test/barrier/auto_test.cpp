// SPDX-License-Identifier: BSD-3-Clause
// The rule behind `auto`: what it picks in each situation, and the reason it gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "barrier/registry.hpp"
#include "machine/hardware.hpp"

namespace muster::test {
namespace {

void expect(const Situation& situation, const char* algorithm, const char* why) {
  const Choice choice = choose_barrier(situation);
  EXPECT_EQ(choice.algorithm.text(), algorithm);
  EXPECT_THAT(choice.why, testing::StartsWith(why));
}

// Each situation fits its rule and as many of the later ones as it can, so their order counts, too.
TEST(Auto, PicksByTheFirstRuleThatFits) {
  Situation s{.participants = 1,
              .others = 2,
              .usable_cpus = 1,
              .bound = true,
              .share_cores = true,
              .follows = true,
              .compose = [] {
                return Choice{parse_algorithm("scheduled"), "it fits"};
              }};
  expect(s, "sense-reversing", "one participant");
  s.participants = 2;
  expect(s, "topo-counter-CORE", "more participants");
  s.share_cores = false;
  expect(s, "sense-reversing-pu", "more participants");
  expect({.participants = 4, .usable_cpus = 2}, "sense-reversing-pu", "more participants");
  s.usable_cpus = 5;
  for (bool Situation::*const need : {&Situation::needs_champion, &Situation::needs_split}) {
    s.*need = true;
    s.bound = true;
    expect(s, "topo-counter", "bound: ");
    s.bound = false;
    expect(s, "sense-reversing-pu", "any other");
    s.*need = false;
  }
  s.bound = true;
  expect(s, "dissemination", "two participants");
  s.participants = 3;
  expect(s, "scheduled", "it fits");
  s.bound = false;
  expect(s, "following", "not all bound");
  s.follows = false;
  expect(s, "dissemination", "up to 8");
  expect({.participants = 32, .usable_cpus = 32}, "sense-reversing-pu", "any other");
}

TEST(Radix, IsTwoUnlessItIsSaid) {
  EXPECT_EQ(parse_algorithm("combining-tree").radix, 2U);
  EXPECT_EQ(parse_algorithm("combining-tree:2").text(), "combining-tree");
  EXPECT_EQ(parse_algorithm("combining-tree:3").radix, 3U);
  EXPECT_EQ(parse_algorithm("combining-tree:3").text(), "combining-tree:3");
  alignas(128) static std::byte memory[8 * 128];
  const Hardware::Cells cells(nullptr, memory, 64, 128);
  const auto path_of_8 = [&](const Shape& shape) {
    std::vector<Word> children;
    for (const auto& vertex : CombiningTree<Hardware>(shape, cells).ticket(0).path) {
      children.push_back(vertex.children);
    }
    return children;
  };
  EXPECT_EQ(path_of_8({.participants = 8}), (std::vector<Word>{2, 2, 2}));
  EXPECT_EQ(path_of_8({.participants = 8, .radix = 4}), (std::vector<Word>{4, 2}));
}

}  // namespace
}  // namespace muster::test
