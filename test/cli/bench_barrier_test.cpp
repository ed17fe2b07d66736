// SPDX-License-Identifier: BSD-3-Clause
// `muster bench barrier`: what it prints and writes, what it does with implementations that hang
// or die, and that it leaves nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "bench/contestant.hpp"
#include "program.hpp"

namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;
using namespace std::chrono_literals;

Words bench(const Words& more) {
  Words words{"bench", "barrier"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json run_json(const Words& words) { return json::parse(run_muster_for_json(bench(words))); }

json find_row(const json& results, const std::string& implementation, unsigned participants = 2) {
  for (const json& row : results.at("results")) {
    if (row.at("implementation") == implementation && row.at("participants") == participants)
      return row;
  }
  ADD_FAILURE() << "no row of " << implementation << " at " << participants;
  return {};
}

/// A row's implementation and participants.
using RowName = std::pair<std::string, unsigned>;

/// Runs it until these rows are complete, sixty times at most: on a busy machine not everyone comes
/// to the end of an episode in so short a time.
json run_json_until_ok(const Words& words, const std::vector<RowName>& rows) {
  json results;
  for (unsigned attempt = 0; attempt < 60; ++attempt) {
    results = run_json(words);
    if (std::all_of(rows.begin(), rows.end(), [&](const RowName& name) {
          return find_row(results, name.first, name.second).at("status") == "ok";
        })) {
      break;
    }
  }
  return results;
}

void expect_row(const json& row) {
  for (const char* name :
       {"implementation", "algorithm", "mode", "map_by", "wait", "status", "reason", "verdict"}) {
    EXPECT_TRUE(row.at(name).is_string()) << name << " of " << row;
  }
  EXPECT_TRUE(row.at("participants").is_number_unsigned());
  EXPECT_TRUE(row.at("episodes").is_number_unsigned());
  EXPECT_TRUE(row.at("verdict") == "quiet" || row.at("verdict") == "noisy");
  const json& latency = row.at("latency_ns");
  if (row.at("status") != "ok") {
    EXPECT_TRUE(latency.at("median").is_null()) << row;
    EXPECT_NE(row.at("reason"), "") << row;
    return;
  }
  const double median = latency.at("median");
  EXPECT_GT(median, 0) << row;
  EXPECT_LE(latency.at("min").get<double>(), median) << row;
  EXPECT_GE(latency.at("p99").get<double>(), median) << row;
  EXPECT_LE(latency.at("ci95").at(0).get<double>(), median) << row;
  EXPECT_GE(latency.at("ci95").at(1).get<double>(), median) << row;
  EXPECT_GE(row.at("exit_skew_ns").get<double>(), 0) << row;
  EXPECT_GT(row.at("episodes").get<std::uint64_t>(), 0U) << row;
}

TEST(BenchBarrier, JsonHasARowForEach) {
  const json results =
      run_json_until_ok({"--seconds", "1", "--participants", "2,3"}, {{"muster", 3}});
  for (const json& row : results.at("results")) expect_row(row);
  std::set<std::string> expected{"muster", "limit", "ping-pong"};
  for (const auto& other : muster::bench::others()) {
    if (other.kind == muster::bench::Other::peer && other.threads &&
        muster::bench::why_missing(other).empty()) {
      expected.insert(std::string(other.name));
    }
  }
  std::set<std::string> found;
  std::set<std::string> algorithms;
  for (const json& row : results.at("results")) {
    found.insert(row.at("implementation"));
    EXPECT_EQ(row.at("mode"), "threads");
    if (row.at("implementation") == "muster") algorithms.insert(row.at("algorithm"));
    if (row.at("implementation") == "limit") {
      EXPECT_EQ(row.at("participants"), 2);
    }
  }
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(algorithms.count("auto") == 1 && algorithms.count("topo") == 1 &&
              algorithms.size() >= 9);
  EXPECT_EQ(find_row(results, "muster", 3).at("status"), "ok");
  const json& machine = results.at("machine");
  EXPECT_EQ(machine.at("topology"), "this machine");
  EXPECT_EQ(machine.at("topology_imposed"), false);
  EXPECT_TRUE(machine.at("model").is_string() && machine.at("kernel").is_string());
  EXPECT_GE(machine.at("cpus").get<unsigned>(), 1U);
}

TEST(BenchBarrier, ProcessesRunAndArePeersWhereTheyCan) {
  const json results = run_json_until_ok({"--seconds", "1", "--participants", "3", "--mode",
                                          "processes", "--algorithms", "auto,sense-reversing"},
                                         {{"muster", 3}, {"pthread_barrier", 3}});
  for (const json& row : results.at("results")) {
    expect_row(row);
    EXPECT_EQ(row.at("mode"), "processes");
  }
  EXPECT_EQ(find_row(results, "muster", 3).at("status"), "ok");
  EXPECT_EQ(find_row(results, "pthread_barrier", 3).at("status"), "ok");
  std::set<std::string> left_out;
  for (const json& item : results.at("left_out")) left_out.insert(item.at("implementation"));
  for (const char* name : {"std::barrier", "libgomp", "libomp"})
    EXPECT_EQ(left_out.count(name), 1U) << name;
}

// What an MPI runs over its messages, here over flags: asked for by name, they are measured.
TEST(BenchBarrier, ThoseOverMessagesAreThereByName) {
  const std::set<std::string> all{"base-linear", "base-double-ring", "base-recursive-doubling",
                                  "base-bruck", "base-tree"};
  std::string list;
  for (const std::string& name : all) list += name + ",";
  list.pop_back();
  std::multiset<std::string> found;
  for (unsigned attempt = 0; attempt < 60 && found.size() < 2 * all.size(); ++attempt) {
    found.clear();
    const json results = run_json({"--seconds", "1", "--participants", "3", "--mode",
                                   "threads,processes", "--algorithms", list, "--peers", "none"});
    for (const json& row : results.at("results")) {
      if (row.at("implementation") != "muster") continue;
      expect_row(row);
      EXPECT_EQ(row.at("via"), "messages");
      if (row.at("status") == "ok") found.insert(row.at("algorithm"));
    }
  }
  for (const std::string& name : all) EXPECT_EQ(found.count(name), 2U) << name;
}

TEST(BenchBarrier, WhatHangsDidNotFinishAndTheOthersGoOn) {
  for (const char* mode : {"threads", "processes"}) {
    const json results =
        run_json_until_ok({"--seconds", "1", "--participants", "2", "--mode", mode, "--algorithms",
                           "auto", "--peers", "pthread_barrier", "--hidden", "test-stuck"},
                          {{"muster", 2}, {"pthread_barrier", 2}});
    const json stuck = find_row(results, "test-stuck");
    expect_row(stuck);
    EXPECT_EQ(stuck.at("status"), "did not finish");
    EXPECT_THAT(stuck.at("reason"), HasSubstr("an episode did not end within"));
    EXPECT_LE(stuck.at("episodes"), 100);
    EXPECT_EQ(find_row(results, "muster").at("status"), "ok");
    EXPECT_EQ(find_row(results, "pthread_barrier").at("status"), "ok");
  }
}

TEST(BenchBarrier, WhatDiesFailedAndTheOthersGoOn) {
  const json results =
      run_json({"--seconds", "0.5", "--participants", "2", "--mode", "threads,processes",
                "--algorithms", "auto", "--peers", "none", "--hidden", "test-crash"});
  unsigned crashed = 0;
  for (const json& row : results.at("results")) {
    expect_row(row);
    if (row.at("implementation") == "test-crash") {
      ++crashed;
      EXPECT_EQ(row.at("status"), "failed");
      EXPECT_THAT(row.at("reason"), HasSubstr("killed by"));
    }
    if (row.at("implementation") == "muster") {
      EXPECT_EQ(row.at("status"), "ok");
    }
  }
  EXPECT_EQ(crashed, 2U);
}

TEST(BenchBarrier, ThreadsThatCannotBeMadeAreAFailure) {
  const Outcome outcome = run_muster_within(
      std::size_t{1} << 30, {"bench", "barrier", "--participants", "400", "--algorithms", "mcs",
                             "--peers", "none", "--seconds", "1"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr(" of 400 threads could be made"));
  EXPECT_EQ(outcome.err, "muster: one of ours failed: see above\n");
}

TEST(BenchBarrier, UnboundRanksAreDeclinedByTopo) {
  const json results = run_json({"--seconds", "0.5", "--participants", "3", "--map-by", "none",
                                 "--algorithms", "topo", "--peers", "none"});
  const json topo = find_row(results, "muster", 3);
  EXPECT_EQ(topo.at("status"), "declined");
  EXPECT_NE(topo.at("reason"), "");
  EXPECT_EQ(topo.at("map_by"), "none");
}

TEST(BenchBarrier, AnImposedTopologyIsNamed) {
  const std::string four = "package:2 numa:2 core:2 pu:1";
  const Words words{"--seconds",    "0.5",  "--participants", "3",
                    "--algorithms", "topo", "--peers",        "none"};
  Words imposed = words;
  imposed.insert(imposed.end(), {"--topology", four});
  const json results = run_json_until_ok(imposed, {{"muster", 3}});
  EXPECT_EQ(results.at("machine").at("topology"), "synthetic " + four);
  EXPECT_EQ(results.at("machine").at("topology_imposed"), true);
  EXPECT_EQ(find_row(results, "muster", 3).at("status"), "ok");
  const Outcome text = run_muster(bench(words), {{"MUSTER_TOPOLOGY", four}});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("as if they sat on: synthetic " + four));
}

TEST(BenchBarrier, TemplateAndCInterfaceSideBySide) {
  const json results = run_json({"--seconds", "0.5", "--participants", "2", "--algorithms",
                                 "sense-reversing", "--peers", "none", "--via", "both"});
  std::set<std::string> ways;
  for (const json& row : results.at("results")) {
    if (row.at("implementation") == "muster") ways.insert(row.at("via"));
  }
  EXPECT_EQ(ways, (std::set<std::string>{"c", "template"}));
}

TEST(BenchBarrier, OutputIsWrittenAndDrawn) {
  const std::filesystem::path directory = std::filesystem::temp_directory_path() /
                                          ("muster-output-" + std::to_string(getpid())) / "new";
  const Outcome outcome =
      run_muster(bench({"--seconds", "0.5", "--participants", "2,3", "--algorithms", "auto",
                        "--peers", "pthread_barrier", "--output", directory}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("95 % interval"));
  EXPECT_THAT(outcome.err, HasSubstr("Written: "));
  std::ifstream file(directory / "barrier.json");
  EXPECT_EQ(json::parse(file).at("benchmark"), "barrier");
  if (expect_written(directory, outcome, {"barrier.json", "barrier.csv"}, {"barrier"})) {
    expect_drawn_without_bounds(directory, "barrier", "latency_ns");
  }
  std::filesystem::remove_all(directory.parent_path());
}

TEST(BenchBarrier, WhatIsRefusedLeavesNoFolder) {
  expect_refused(bench({}), {
                                {{"--algorithms", "auto,nonsense"}, "sense-reversing-counter"},
                                {{"--algorithms", "topo-NONSENSE"}, "NUMA"},
                                {{"--participants", "2,0"}, "--participants 0: 1 to 4096"},
                                {{"--participants", "5000"}, "1 to 4096"},
                                {{"--participants", "x"}, "--participants"},
                                {{"--mode", "threads,nonsense"}, "there are: threads, processes"},
                                {{"--map-by", "nonsense"}, "core, numa, socket, none"},
                                {{"--topology", "nonsense:2"}, "nonsense:2"},
                                {{"--wait", "nonsense"}, "spin-yield-sleep"},
                                {{"--peers", "nonsense"},
                                 "no peer \"nonsense\"; there are: all, none, ck (its five), "},
                                {{"--seconds", "0"}, "--seconds: more than 0, at most 86400"},
                                {{"--seconds", "nan"}, "--seconds"},
                                {{"--json", "--csv"}, "exclude each other"},
                                {{"--seconds", "0.029", "--participants", "2,3", "--rounds", "6",
                                  "--algorithms", "mcs,auto", "--peers", "none"},
                                 "--seconds 0.029: 6 barriers in 6 rounds take 0.036 at least"},
                                {{"--rounds", "0"}, "--rounds"},
                                {{"--turn", "0"}, "--turn: more than 0"},
                                {{"--regime", "hogs,nonsense"},
                                 "no regime \"nonsense\"; there are: all, quota (both), quiet, "
                                 "crowded, hogs, session, quota150, quota50, late"},
                                {{"--via", "nonsense"}, "c, template, both"},
                                {{"--hidden", "nonsense"}, "no test contestant \"nonsense\""},
                            });
}

TEST(BenchBarrier, RegimesAreWrittenDrawnAndSummed) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("muster-regimes-" + std::to_string(getpid()));
  const Outcome outcome =
      run_muster(bench({"--regime", "quiet,hogs", "--participants", "2,3", "--turn", "5",
                        "--rounds", "2", "--peers", "pthread_barrier", "--output", directory}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("hogs: 3 threads"));
  std::ifstream file(directory / "barrier.json");
  const json results = json::parse(file);
  ASSERT_EQ(results.at("results").size(), 4U * (7 + 1));
  for (const json& row : results.at("results")) {
    EXPECT_TRUE(row.at("regime") == "quiet" || row.at("regime") == "hogs");
    if (row.at("status") != "ok") continue;
    EXPECT_GT(row.at("latency_ns").at("mean"), 0) << row;
    EXPECT_GE(row.at("cpu_ns_per_episode"), 0) << row;
  }
  EXPECT_EQ(results.at("conclusions").size(), 4U);
  expect_written(directory, outcome, {"barrier.json", "barrier.csv"}, {"barrier"});
  const Outcome summary = run_muster({"bench", "summary", directory});
  EXPECT_EQ(summary.exit_code, 0) << summary.err;
  EXPECT_THAT(summary.out, HasSubstr("hogs"));
  std::filesystem::remove_all(directory);
}

TEST(BenchBarrier, CsvHasAsManyRows) {
  const Outcome outcome = run_muster(bench({"--seconds", "0.5", "--participants", "2",
                                            "--algorithms", "auto", "--peers", "none", "--csv"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "") << "it is short";
  EXPECT_THAT(outcome.out, testing::StartsWith("implementation,algorithm,"));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'),
            4);  // names, auto, limit, ping-pong
}

TEST(BenchBarrier, KilledItLeavesNothing) {
  const std::vector<std::string> before = shared_memory_files();
  for (const char* mode : {"threads", "processes"}) {
    Program program(bench({"--seconds", "3600", "--participants", "2,4", "--mode", mode}));
    std::this_thread::sleep_for(1s);
    ASSERT_FALSE(program.left(0ms).empty()) << "it ended too early for this test";
    program.kill_it();
    program.wait();
    EXPECT_THAT(program.left(300s), IsEmpty());
  }
  EXPECT_THAT(shared_memory_files(before), IsEmpty());
}

}  // namespace
