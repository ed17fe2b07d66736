// SPDX-License-Identifier: BSD-3-Clause
// `muster tune`, the profile that it leaves, and the picture that `explain` draws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "command.hpp"

namespace {

using nlohmann::json;
using testing::HasSubstr;

using Tune = CommandTest;

TEST_F(Tune, ComposesABarrierThatIsFasterThanAllOthers) {
  const std::vector<std::string> asked = {
      "tune",     "--machine", "epyc-7763-2s", "--ranks",     "32",
      "--starts", "1",         "--map-by",     "core,socket", "--json"};
  const std::string text = muster(asked);
  EXPECT_EQ(text, muster(asked)) << "it is deterministic";
  std::map<std::string, std::vector<json>> by_mapping;
  const json result = json::parse(text);
  for (const json& row : result.at("results")) by_mapping[row.at("map_by")].push_back(row);
  ASSERT_EQ(by_mapping.size(), 2U);
  const auto is_composed = [](const json& row) {
    return row.at("algorithm").get<std::string>().starts_with("scheduled-");
  };
  for (const auto& [mapping, rows] : by_mapping) {
    EXPECT_TRUE(is_composed(rows.front())) << rows.front();
    EXPECT_FALSE(std::all_of(rows.begin(), rows.end(), is_composed)) << "beside the best other one";
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(), [](const json& a, const json& b) {
      return a.at("latency_us") < b.at("latency_us");
    }));
    // What it names can be asked for by that name, and takes as long.
    const json again = json::parse(
        muster({"sim", "barrier", "--machine", "epyc-7763-2s", "--ranks", "32", "--map-by", mapping,
                "--algorithms", rows.front().at("algorithm"), "--json"}));
    EXPECT_EQ(again.at("results").front(), rows.front());
  }
}

TEST_F(Tune, WritesAProfileThatAutoTakes) {
  const std::filesystem::path path = folder_ / "made" / "profile";
  const auto tune = [&](const char* ranks, const char* set) {
    return muster({"tune", "--machine", "epyc-7763-2s", "--ranks", ranks, "--map-by", "core",
                   "--starts", "1", "--set", set, "--profile", path, "--json"});
  };
  const json best = json::parse(tune("12", "call=250"));
  const std::string first = read(path);
  static_cast<void>(tune("16", "call=250"));
  static_cast<void>(tune("12", "poll-turn=10"));
  const std::string whole = read(path);
  EXPECT_THAT(whole, testing::StartsWith(first)) << "what was there stays";
  EXPECT_THAT(whole, HasSubstr("machine mpi L3:16 NUMA:2 CORE:128\nteam 12 L3:2 NUMA:1 apart:2 "));
  EXPECT_THAT(whole, HasSubstr("\nteam 16 L3:2 NUMA:1 apart:2 takes scheduled-"));
  EXPECT_THAT(whole, HasSubstr("\nmachine threads L3:16 NUMA:2 CORE:128\nteam 12 L3:2 "));
  static_cast<void>(tune("12", "call=250"));
  const std::string again = read(path);
  EXPECT_EQ(std::count(again.begin(), again.end(), '\n'), 7) << "a team stands there once";

  const std::map<std::string, std::string> environment = {{"MUSTER_PROFILE", path}};
  const auto ask = [&](const Words& words) {
    const Outcome outcome = run_muster(words, environment);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out).at("results").front();
  };
  const auto explained = [&](const char* participants) {
    return ask(
        {"explain", "--machine", "epyc-7763-2s", "-p", participants, "--map-by", "core", "--json"});
  };
  EXPECT_EQ(explained("12").at("algorithm"), best.at("results").front().at("algorithm"));
  EXPECT_THAT(explained("12").at("why"), HasSubstr("has it for such a team"));
  EXPECT_THAT(explained("13").at("why"), HasSubstr("nearest team, 12 L3:2 NUMA:1 apart:2;"));
  const json unbound = ask({"explain", "--machine", "epyc-7763-2s", "-p", "12", "--json"});
  EXPECT_EQ(unbound.at("algorithm"), "following");
  EXPECT_THAT(unbound.at("why"), HasSubstr("; what profile '" + path.string() + "' has for that"));
  const json simulated = ask({"sim", "barrier", "--machine", "epyc-7763-2s", "--ranks", "12",
                              "--algorithms", "auto", "--members", "0", "--json"});
  EXPECT_EQ(simulated.at("chosen"), explained("12").at("algorithm"));
}

TEST_F(Tune, SeveralAtOnceLoseNothingOfEachOther) {
  const std::filesystem::path path = folder_ / "profile";
  std::vector<std::unique_ptr<Program>> all;
  for (unsigned ranks = 2; ranks < 10; ++ranks) {
    all.push_back(std::make_unique<Program>(Words{"tune", "--machine", "core:9 pu:1", "--ranks",
                                                  std::to_string(ranks), "--starts", "1",
                                                  "--profile", path}));
  }
  for (const auto& one : all) EXPECT_EQ(one->wait().exit_code, 0);
  const std::string text = read(path);
  for (unsigned ranks = 2; ranks < 10; ++ranks)
    EXPECT_THAT(text, HasSubstr("\nteam " + std::to_string(ranks) + " "));
}

TEST_F(Tune, TakesEveryTeamSizeAndPlacementUnlessTheyAreNamed) {
  const json result = json::parse(
      muster({"tune", "--machine", "package:2 [numa] core:3 pu:1", "--starts", "1", "--json"}));
  std::set<std::string> teams;
  for (const json& row : result.at("results"))
    teams.insert(row.at("ranks").dump() + " by " + row.at("map_by").get<std::string>());
  EXPECT_THAT(teams, testing::ElementsAre("2 by core", "2 by numa", "4 by core", "4 by numa",
                                          "6 by core", "6 by numa"));
}

TEST_F(Tune, SaysWhatWasAskedAndHasASeed) {
  const auto tune = [&](const char* seed) {
    return json::parse(muster({"tune", "--machine", "package:2 [numa] core:3 pu:1", "--ranks",
                               "2,6", "--map-by", "numa", "--starts", "1", "--set", "call=5",
                               "--without", "ll-sc", "--seed", seed, "--json"}));
  };
  const json one = tune("1");
  json asked = one.at("asked");
  EXPECT_EQ("muster " + asked.at("version").get<std::string>() + "\n", muster({"--version"}));
  asked.erase("version");
  EXPECT_EQ(asked, json::parse(R"({
    "machine": "package:2 [numa] core:3 pu:1",
    "teams": [{"ranks": 2, "map_by": "numa"}, {"ranks": 6, "map_by": "numa"}],
    "set": ["call=5"], "without": ["ll-sc"], "starts": 1, "seed": 1})"));
  EXPECT_EQ(tune("1"), one);
  const json other = tune("2");
  EXPECT_EQ(other.at("asked").at("seed"), 2);
  EXPECT_NE(other.at("results"), one.at("results"));
}

TEST_F(Tune, BeginsWithNoTeamWhereOneIsTooLarge) {
  const std::filesystem::path path = folder_ / "profile";
  const Outcome outcome =
      run_muster({"tune", "--machine", "core:2 pu:1", "--ranks", "2,4", "--profile", path});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("ask for as many ranks at most"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(Tune, MeasuresThisMachineAndTriesTheWinnerHere) {
  const std::filesystem::path path = folder_ / "profile";
  const Outcome outcome =
      run_muster_when_steady({"tune", "--ranks", "2", "--map-by", "core", "--rounds", "2",
                              "--starts", "1", "--seconds", "0.2", "--profile", path, "--json",
                              // So the model finds a barrier of counters, which is slower here.
                              "--set", "rmw-local=0.01,store-gap=90"});
  for (const char* reason : {"one core only", "changed its speed", "nest regularly"}) {
    if (outcome.err.find(reason) != std::string::npos) GTEST_SKIP() << outcome.err;
  }
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_TRUE(result.at("predicted").get<bool>());
  ASSERT_GE(result.at("here").size(), 2U);
  EXPECT_EQ(result.at("here").front().at("algorithm"),
            result.at("results").front().at("algorithm"));
  EXPECT_TRUE(result.at("asked").at("machine").is_null());
  EXPECT_EQ(result.at("asked").at("seconds"), 0.2);
  const json& winner = result.at("here").front();
  std::set<std::string> names;
  std::string taken;
  bool is_one_faster = false;
  for (const json& row : result.at("here")) {
    names.insert(row.at("algorithm"));
    EXPECT_GT(row.at("predicted_us"), 0);
    EXPECT_EQ(row.at("measured_us").is_number(), row.at("status") == "ok") << row;
    if (row.at("taken")) taken = row.at("algorithm");
    if (row.at("status") != "ok" || winner.at("status") != "ok" || row.at("noisy")) continue;
    is_one_faster = is_one_faster || row.at("measured_us_high") < winner.at("measured_us_low");
  }
  EXPECT_EQ(names.size(), result.at("here").size());
  EXPECT_EQ(taken != winner.at("algorithm"), is_one_faster) << result.at("here");
  EXPECT_THAT(read(path), HasSubstr("\nteam 2 "));
  EXPECT_THAT(read(path), HasSubstr(" takes " + taken + " "));
}

TEST_F(Tune, ExplainDrawsWhoWaitsForWhom) {
  const std::filesystem::path folder = folder_ / "waits";
  const Words words = {"explain", "--machine", "package:2 [numa] core:4 pu:1", "-p", "8", "--json"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), words.begin(), words.end());
    more.insert(more.end(), {"--output", folder.string()});
    return run_muster(more);
  };
  const Outcome unplaced = with({});
  EXPECT_EQ(unplaced.exit_code, 2);
  EXPECT_THAT(unplaced.err, HasSubstr("--output: the model has to know where all sit"));
  EXPECT_FALSE(std::filesystem::exists(folder));

  const Outcome outcome = with({"--map-by", "core"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  expect_written(folder, outcome, {"explain.json"}, {"explain"});
  const json written = json::parse(read(folder / "explain.json"));
  EXPECT_EQ(written.at("results"), json::parse(outcome.out).at("results"));
  EXPECT_TRUE(written.at("waits").at("predicted").get<bool>());
  EXPECT_EQ(written.at("waits").at("ranks").size(), 8U);
  EXPECT_EQ(written.at("waits").at("ranks").at(5).at("unit"), "NUMA 1");
  EXPECT_FALSE(written.at("waits").at("waits").empty());
}

}  // namespace
