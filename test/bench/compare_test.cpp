// SPDX-License-Identifier: BSD-3-Clause
// What `muster compare` tells from chance, on runs that are drawn: of one build, of one that was
// made slower, of one with a single slower row.
#include "bench/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "machine/error.hpp"

namespace muster::bench {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

/// How rows scatter from run to run, and rounds (usually by 0.8 %), as runs of one build showed.
struct Hour {
  double rows;
  unsigned one_row_in;  ///< scatters far
  double far_rows;
  double far_rounds;  ///< one in five
};
constexpr Hour quiet{0.02, 8, 0.12, 0.1};
constexpr Hour noisy{0.03, 4, 0.3, 0.28};

/// What a virtual machine of two CPUs does to its runs: each setting drifts, each row scatters from
/// run to run, more where CPUs are shared, and its rounds scatter around that. Or as in an hour.
Json draw_run(std::mt19937_64& random, double ours_times, double one_times = 1,
              double ours_together = 0, const Hour* hour = nullptr) {
  const auto factor = [&](double share) {
    return std::exp(std::normal_distribution<double>(0, share)(random));
  };
  Json json{{"schema", 1},
            {"benchmark", "barrier"},
            {"machine", {{"model", "m"}, {"cpus", 2}, {"architecture", "a"}}},
            {"build", {{"commit", "c"}}},
            {"settings", {{"map_by", "core"}}},
            {"results", Json::array()}};
  const auto scatter = [&](double always, double usual, unsigned one_in, double far) {
    return factor(hour == nullptr ? always : random() % one_in == 0 ? far : usual);
  };
  const Hour its = hour == nullptr ? quiet : *hour;
  if (ours_together > 0) ours_times *= factor(ours_together);
  for (const auto& [participants, noise] : {std::pair{2, 0.04}, {4, 0.1}, {8, 0.15}}) {
    const double drift = factor(0.05);
    for (int i = 0; i < 24; ++i) {
      const bool ours = i < 14;
      const double base = 100.0 * (1 + i) * participants * drift *
                          scatter(noise, its.rows, its.one_row_in, its.far_rows) *
                          (ours ? ours_times : 1) * (i == 0 && participants == 2 ? one_times : 1);
      Json rounds = Json::array();
      for (int round = 0; round < 5; ++round)
        rounds.push_back(base * scatter(0.03, 0.008, 5, its.far_rounds));
      json["results"].push_back({{"implementation", ours ? "muster" : "p" + std::to_string(i)},
                                 {"algorithm", "a" + std::to_string(i)},
                                 {"via", "c"},
                                 {"participants", participants},
                                 {"mode", "threads"},
                                 {"regime", nullptr},
                                 {"round_means_ns", rounds}});
    }
  }
  return json;
}

bool tells_anything(const Comparison& comparison) {
  bool any = comparison.whole->is_told;
  for (const Change& change : comparison.rows) any = any || change.is_told;
  return any;
}

/// How many runs of each build are compared. Where there are several, all of ours move together
/// from run to run, which one run of each takes for a change, and some rows scatter far, which it
/// does in 7 of 100 comparisons.
class Compared : public testing::TestWithParam<int> {
 protected:
  /// In how many of a hundred comparisons `tells` is true.
  static int told_in_a_hundred(double ours_times, double one_times,
                               const std::function<bool(const Comparison&)>& tells,
                               const Hour& hour = quiet) {
    const bool several = GetParam() > 1;
    const double together = several ? 0.02 : 0;
    std::mt19937_64 random(7);
    int told = 0;
    for (int i = 0; i < 100; ++i) {
      std::vector<RunFile> before;
      std::vector<RunFile> after;
      for (int run = 0; run < GetParam(); ++run) {
        before.push_back(
            read_run(draw_run(random, 1, 1, together, several ? &hour : nullptr), "old"));
        after.push_back(read_run(
            draw_run(random, ours_times, one_times, together, several ? &hour : nullptr), "new"));
      }
      told += tells(compare_runs(before, after)) ? 1 : 0;
    }
    return told;
  }
};

TEST_P(Compared, RunsOfOneBuildShowNothing) {
  EXPECT_LE(told_in_a_hundred(1, 1, tells_anything), 5);
}

TEST_P(Compared, RunsShowABuildThatIsATenthSlowerOrFaster) {
  for (const double times : {1.1, 1 / 1.1}) {
    const auto is_told = [&](const Comparison& c) {
      const double ratio = c.whole->ratio;
      return c.whole->is_told && (times > 1 ? ratio > 1.03 : ratio < 0.97);
    };
    EXPECT_GE(told_in_a_hundred(times, 1, is_told), 95) << times;
  }
}

// 95 were wanted.
TEST_P(Compared, SeveralRunsOfANoisyHourShowABuildThatIsATenthSlower) {
  if (GetParam() == 1) return;
  const auto is_told = [](const Comparison& c) { return c.whole->is_told && c.whole->ratio > 1; };
  EXPECT_GE(told_in_a_hundred(1.1, 1, is_told, noisy), 85);
  EXPECT_LE(told_in_a_hundred(1, 1, tells_anything, noisy), 5);
}

TEST_P(Compared, RunsShowOneRowThatIsTwiceAsSlow) {
  const auto is_that_row = [](const Comparison& c) {
    return c.rows.front().is_told && c.rows.front().what == "a0, 2 threads";
  };
  EXPECT_GE(told_in_a_hundred(1, 2, is_that_row), 95);
}

TEST_P(Compared, IntervalsHoldTheTruth) {
  const auto holds = [](const Comparison& c) {
    return c.whole->ci95.lo <= 1.05 && 1.05 <= c.whole->ci95.hi;
  };
  EXPECT_GE(told_in_a_hundred(1.05, 1, holds), 90);
}

INSTANTIATE_TEST_SUITE_P(RunsOfEach, Compared, testing::Values(1, 4));

TEST(Compare, WantsOneRunOfEachOrTwoAtLeast) {
  std::mt19937_64 random(1);
  const RunFile run = read_run(draw_run(random, 1), "f");
  EXPECT_THROW(compare_runs({run}, {run, run}), Error);
  EXPECT_THROW(compare_runs({}, {}), Error);
}

TEST(Compare, TellsEachRowThatIsSlow) {
  std::mt19937_64 random(1);
  const Json before = draw_run(random, 1);
  Json after = draw_run(random, 1);
  for (Json& row : after["results"]) {
    if (row["algorithm"] != "a0" || row["participants"] == 8) continue;
    for (Json& mean : row["round_means_ns"]) mean = 4 * mean.get<double>();
  }
  std::vector<std::string> told;
  for (const Change& change :
       compare_runs({read_run(before, "old")}, {read_run(after, "new")}).rows) {
    if (change.is_told) told.push_back(change.what);
  }
  EXPECT_THAT(told, testing::UnorderedElementsAre("a0, 2 threads", "a0, 4 threads"));
}

TEST(Compare, NamesWhatIsInOneRunOnly) {
  std::mt19937_64 random(1);
  Json before = draw_run(random, 1);
  Json after = before;
  before["results"].erase(0);
  after["results"].erase(1);
  const Comparison comparison = compare_runs({read_run(before, "old")}, {read_run(after, "new")});
  EXPECT_EQ(comparison.only_old, std::vector<std::string>{"a1, 2 threads"});
  EXPECT_EQ(comparison.only_new, std::vector<std::string>{"a0, 2 threads"});
  EXPECT_FALSE(tells_anything(comparison));
}

std::string refusal(const Json& json) {
  try {
    const RunFile run = read_run(json, "f");
    compare_runs({run}, {run});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Compare, RefusesWhatIsNoRun) {
  std::mt19937_64 random(1);
  const Json good = draw_run(random, 1);
  EXPECT_EQ(refusal(good), "");
  EXPECT_THAT(refusal(Json::array()), HasSubstr("f: no JSON object"));
  EXPECT_THAT(refusal(Json::object()), HasSubstr("f: not what bench barrier"));
  Json other = good;
  other["schema"] = 2;
  EXPECT_THAT(refusal(other), HasSubstr("f: of schema 2"));
  other["schema"] = "x";
  EXPECT_THAT(refusal(other), HasSubstr("f: of schema \"x\""));
  other = good;
  other.erase("machine");
  EXPECT_THAT(refusal(other), HasSubstr("f: not whole: "));
  other = good;
  for (Json& row : other["results"]) row["implementation"] = "muster";
  EXPECT_THAT(refusal(other), HasSubstr("0 of the others' implementations are in all runs"));
}

}  // namespace
}  // namespace muster::bench
