// SPDX-License-Identifier: BSD-3-Clause
// Explanations as JSON: whatever the texts have in them.
#include "capi/explain.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster {
namespace {

TEST(Explain, IsJsonWhateverTheTextsHaveInThem) {
  Plan plan;
  plan.participants = 4;
  plan.algorithm.name = "topo";
  plan.asked = "quoted \"and\\ broken\n\t\x7f\xff\xc3";
  plan.groups.levels.push_back({"L3", {{{0, 1}}, {{2, 3}}}});
  plan.groups.levels.push_back({"NU\"MA", {{{0, 2}}}});
  plan.wait.spin_ns = WaitPolicy::forever;
  plan.wait.yield_ns = 7;
  const auto told = nlohmann::json::parse(explain_as_json(plan, BlockLayout{}));
  EXPECT_EQ(told["asked"], "quoted \"and\\ broken\n\t\x7f\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(told["participants"], 4);
  EXPECT_EQ(told["shared"], false);
  EXPECT_TRUE(told["wait"]["spin_ns"].is_null());
  EXPECT_EQ(told["wait"]["yield_ns"], 7);
  ASSERT_EQ(told["groups"].size(), 3U);
  EXPECT_EQ(told["groups"][2]["level"], "NU\"MA");
  EXPECT_EQ(told["groups"][1]["members"], (std::vector<unsigned>{2, 3}));
  EXPECT_EQ(told["groups"][1]["leader"], 2);
  EXPECT_EQ(told["steps"].size(), 3U);
  EXPECT_FALSE(told.contains("learnt"));
  Learnt learnt;
  learnt.ranks = 3;
  EXPECT_EQ(nlohmann::json::parse(explain_as_json(plan, BlockLayout{}, learnt))["learnt"]["ranks"],
            3);
}

TEST(Explain, SaysWhereItBelievesEverybodyToSit) {
  Plan plan;
  plan.participants = 3;
  plan.algorithm.name = "following";
  EXPECT_FALSE(nlohmann::json::parse(explain_as_json(plan, BlockLayout{})).contains("whereabouts"));
  const Whereabouts where{{8, 0, 1}, "scheduled-NUMA:flat+line", 2};
  const auto told = nlohmann::json::parse(explain_as_json(plan, BlockLayout{}, {}, where));
  EXPECT_EQ(told["whereabouts"]["pus"], nlohmann::json::parse("[7,null,0]"));
  EXPECT_EQ(told["whereabouts"]["composed"], "scheduled-NUMA:flat+line");
  EXPECT_EQ(told["whereabouts"]["changes"], 2);
  const std::string text = explain_as_text(plan, BlockLayout{}, {}, where);
  EXPECT_NE(text.find("seats         on CPU, by rank: 7 ? 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("runs          scheduled-NUMA:flat+line (2 changes)\n"), std::string::npos);
}

}  // namespace
}  // namespace muster
