// SPDX-License-Identifier: BSD-3-Clause
// What `muster run --report` says of one mutex, by what the model says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/contention.hpp"

namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// Four threads that wait for one mutex; the model has `modelled` times as many sections.
std::string told(double modelled, const json& ways, bool elsewhere = false) {
  const json predicted{{"machine", "here"},
                       {"about", "two cores"},
                       {"threads", 2},
                       {"lines", 1},
                       {"measured_sections_s", 1e6},
                       {"modelled_sections_s", modelled * 1e6},
                       {"ways", ways},
                       {"measured_elsewhere", elsewhere}};
  const json mutex{
      {"mutex", "hot (app)"},  {"locks", 1e6}, {"waited", 9e5},     {"waited_ns", 2e9},
      {"held_ns", 5e8},        {"threads", 4}, {"most_waiting", 3}, {"callers", json::array()},
      {"predicted", predicted}};
  return muster::format_contention({{"program", "app"},
                                    {"process", 1},
                                    {"elapsed_ns", 1e9},
                                    {"threads", 4},
                                    {"locks", 1e6},
                                    {"waited", 9e5},
                                    {"waited_ns", 2e9},
                                    {"mutexes", 1},
                                    {"not_noted", 0},
                                    {"contended", json::array({mutex})}});
}

/// What the mutexes, `cc-synch` and `rcl` make of it; 0: it was not modelled.
json ways(double mcs, double combining, double server) {
  json all = json::array();
  for (const auto& [lock, ratio] : {std::pair{"mutex-pthread", 1.0},
                                    {"mutex-spin-then-park", 1.0},
                                    {"mutex-mcs", mcs},
                                    {"mutex-cna", 1.0},
                                    {"cc-synch", combining},
                                    {"rcl", server}}) {
    if (ratio > 0) all.push_back({{"lock", lock}, {"near", false}, {"ratio", ratio}});
  }
  return all;
}

TEST(Contention, WhereTheModelIsFarOffItSaysNothingOfDelegation) {
  EXPECT_THAT(told(0.6, ways(1.5, 2, 3)), HasSubstr("delegation may gain"));
  for (const double off : {0.23, 3.0}) {
    const std::string text = told(off, ways(1.5, 2, 3));
    EXPECT_THAT(text, HasSubstr("--mutex mcs"));
    EXPECT_THAT(text, ContainsRegex("lacks\\s+something"));
    EXPECT_THAT(text, Not(HasSubstr("delegation may gain"))) << text;
  }
  EXPECT_THAT(told(3, ways(1.5, 2, 3), true), HasSubstr("delegation may gain"));
  const std::string text = told(0.23, ways(1, 1, 1));
  EXPECT_THAT(text, ContainsRegex("lacks\\s+something"));
  EXPECT_THAT(text, Not(HasSubstr("nothing of these helps"))) << text;
}

TEST(Contention, AServerWithoutACoreIsNotPromised) {
  const std::string text = told(1, ways(1, 1.05, 0));
  EXPECT_THAT(text, ContainsRegex("rcl +no core free"));
  EXPECT_THAT(text, HasSubstr("nothing of these helps"));
}

}  // namespace
