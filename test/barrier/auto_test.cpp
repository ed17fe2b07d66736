// SPDX-License-Identifier: BSD-3-Clause
// The rule behind `auto`: what it picks in each situation, and the reason it gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>

#include "barrier/registry.hpp"
#include "machine/hardware.hpp"

namespace muster::test {
namespace {

using testing::HasSubstr;

/// The algorithms that each numbered rule of the page names.
std::vector<std::set<std::string>> documented_rules() {
  std::ifstream page(MUSTER_SOURCE_DIR "/doc/algorithms.md");
  std::vector<std::set<std::string>> rules;
  bool there = false;
  static const std::regex number("^[0-9]+\\. .*");
  static const std::regex name("`([a-z-]+(-CORE)?)`");
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("### ")) there = line == "### What `auto` takes";
    if (!there) continue;
    if (std::regex_match(line, number)) rules.emplace_back();
    if (rules.empty()) continue;
    for (std::sregex_iterator it(line.begin(), line.end(), name), end; it != end; ++it) {
      rules.back().insert((*it)[1]);
    }
  }
  return rules;
}

struct Case {
  Situation situation;
  const char* why;  ///< a part of the reason
};

// Each situation fits its rule and as many of the later ones as it can, so their order counts, too.
TEST(Auto, PicksByTheRulesOfThePageInTheirOrder) {
  Situation s{.participants = 1,
              .others = 2,
              .usable_cpus = 1,
              .bound = true,
              .share_cores = true,
              .follows = true,
              .compose = [] {
                return Choice{parse_algorithm("scheduled"), "it fits"};
              }};
  std::vector<std::vector<Case>> by_rule = {{{s, "one participant"}}};
  const auto next = [&](const char* why) { by_rule.push_back({{s, why}}); };
  s.participants = 2;
  next("last on a core");
  s.share_cores = false;
  by_rule.back().push_back({s, "none share"});
  by_rule.back().push_back(
      {{.participants = 4, .usable_cpus = 2, .needs_split = true}, "not bound"});
  s.usable_cpus = 5;
  const Situation with_cpus = s;
  next("two participants");
  s.participants = 3;
  next("it fits");
  s.bound = false;
  next("not all are bound");
  s.follows = false;
  next("few participants");
  s.participants = s.usable_cpus = 32;
  s.others = 0;
  next("many participants");
  for (const bool bound : {true, false}) {
    Situation other = with_cpus;
    other.bound = bound;
    other.needs_champion = true;
    by_rule.back().push_back({other, "completion"});
    other.needs_split = true;
    by_rule.back().push_back({other, "apart"});
  }
  const auto rules = documented_rules();
  ASSERT_EQ(rules.size(), by_rule.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    std::set<std::string> chosen;
    for (const Case& c : by_rule[i]) {
      const Choice choice = choose_barrier(c.situation);
      EXPECT_THAT(choice.why, HasSubstr(c.why));
      chosen.insert(choice.algorithm.text());
    }
    EXPECT_EQ(chosen, rules[i]) << "rule " << i + 1;
  }
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
