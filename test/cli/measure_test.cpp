// SPDX-License-Identifier: BSD-3-Clause
// `muster measure`: a given matrix drawn, this machine's measured, and Ctrl-C.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "program.hpp"
#include "topology/topology.hpp"

namespace {

using nlohmann::json;
using testing::HasSubstr;

class Measure : public testing::Test {
 protected:
  Measure() {
    std::filesystem::create_directories(folder_);
    std::ofstream csv(matrix_);
    for (unsigned a = 0; a < 32; ++a) {
      for (unsigned b = 0; b < a; ++b) {
        csv << (a / 8 == b / 8 ? 25 : a / 16 == b / 16 ? 90 : 200) + (a + b) % 3 << ",";
      }
      csv << "\n";
    }
  }
  ~Measure() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("muster-measure-" + std::to_string(getpid()));
  const std::string matrix_ = folder_ / "matrix.csv";
};

TEST_F(Measure, TellsWhatLevelsAMatrixHas) {
  const json found = json::parse(run_muster_for_json(
      {"measure", "--from", matrix_, "--machine", "package:2 l3:2 core:8 pu:1"}));
  EXPECT_EQ(found["schema"], 1);
  ASSERT_EQ(found["levels"].size(), 3U);
  EXPECT_EQ(found["levels"][0]["hwloc"], "L3");
  EXPECT_EQ(found["levels"][0]["agreement"], 1);
  EXPECT_EQ(found["levels"][0]["groups"].size(), 4U);
  EXPECT_NEAR(found["levels"][0]["median_ns"].get<double>(), 26, 1);
  EXPECT_THAT(found["levels"][1]["hwloc"].get<std::string>(), HasSubstr("PACKAGE"));
  EXPECT_EQ(found["levels"][2]["pairs"], 16 * 16);
  EXPECT_EQ(found["ns"][31].size(), 31U);

  const Outcome outcome = run_muster({"measure", "--from", matrix_});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("4 of 8"));
  std::istringstream lines(outcome.out);
  std::string line;
  std::getline(lines, line);  // the file's name may be long
  while (std::getline(lines, line)) EXPECT_LE(line.size(), 79U) << line;
}

TEST_F(Measure, WritesWhatImportAndReportRead) {
  const std::filesystem::path folder = folder_ / "results";
  const Outcome outcome = run_muster({"measure", "--from", matrix_, "--output", folder});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  expect_written(folder, outcome, {"measure.json", "measure.csv"}, {"measure"});
  const Outcome import = run_muster({"machine", "import", "--latencies", folder / "measure.csv",
                                     "--topology", "package:2 l3:2 core:8 pu:1", "--name", "it"});
  EXPECT_EQ(import.exit_code, 0) << import.err;
  EXPECT_THAT(import.out, HasSubstr("latency L3 26 ns"));
  const Outcome report = run_muster({"report", folder.string() + "/", "--json"});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_THAT(report.err, HasSubstr("results/report.html"));
  EXPECT_EQ(json::parse(report.out)["results"], json::array({"measure"}));
  std::ifstream file(folder / "report.html");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(page, HasSubstr("<td>level 1</td><td>4 of 8</td>"));
  EXPECT_THAT(page, HasSubstr("muster measure --from " + matrix_));

  std::ofstream(folder / "barrier.json") << "{}";
  EXPECT_EQ(run_muster({"report", folder}).exit_code, 2);
  const Outcome none = run_muster({"report", folder_});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("muster measure --output"));
}

TEST_F(Measure, RefusesWhatItCannotMeasure) {
  expect_refused({"measure"},
                 {{{"--cpus", "0"}, "CPU 0 alone"},
                  {{"--cpus", "0,999999"}, "999999 cannot be used here"},
                  {{"--cpus", "x"}, "x"},
                  {{"--rounds", "0"}, "--rounds"},
                  {{"--machine", "oak"}, "--machine goes with --from"},
                  {{"--from", matrix_, "--machine", "oak"}, "32 CPUs, the topology or --cpus 8"},
                  {{"--json", "--csv"}, "exclude each other"}});
}

/// Ctrl-C while it takes long: what it has printed, and written to `results`.json; null if nothing
/// was whole yet.
json stopped(std::vector<std::string> words, const std::filesystem::path& folder,
             const std::string& results) {
  words.insert(words.end(), {"--json", "--output", folder});
  Program program(words);
  for (int left_ms = 300'000; left_ms > 0 && !std::filesystem::exists(folder); --left_ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // it minds Ctrl-C by then
  }
  EXPECT_TRUE(std::filesystem::exists(folder)) << "it does not begin";
  std::this_thread::sleep_for(std::chrono::seconds(1));
  program.send(SIGINT);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Ctrl-C again ends at once"));
  EXPECT_THAT(program.left(std::chrono::seconds(10)), testing::IsEmpty());
  if (outcome.out.empty()) {
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    return {};
  }
  std::ifstream file(folder / (results + ".json"));
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(written, outcome.out);
  json kept = json::parse(outcome.out);
  EXPECT_EQ(kept["stopped"], true) << results;
  return kept;
}

TEST_F(Measure, KeepsWholeRoundsOnCtrlC) {
  if (muster::Topology::this_machine().pus().count() < 2) GTEST_SKIP() << "one CPU";
  const json kept = stopped({"measure", "--rounds", "100000"}, folder_ / "stopped", "measure");
  if (kept.is_null()) GTEST_SKIP() << "so busy that no pair was measured";
  EXPECT_LT(kept["rounds"], 100000);
  EXPECT_EQ(kept["unmeasured"] == 0, kept["rounds"] > 0);
}

TEST_F(Measure, BenchesKeepWholeRoundsOnCtrlC) {
  const std::vector<std::string> barrier{"bench",   "barrier", "--algorithms",   "dissemination",
                                         "--peers", "none",    "--participants", "2,3"};
  const std::vector<std::string> lock{"bench",     "lock", "--locks", "mcs",
                                      "--threads", "1,2",  "--array", "1000"};
  unsigned whole = 0;
  for (std::vector<std::string> words : {barrier, lock}) {
    words.insert(words.end(), {"--seconds", "3000", "--rounds", "1000"});
    const std::string what = words[1];
    const json kept = stopped(words, folder_ / what, what);
    if (kept.is_null()) continue;
    ++whole;
    for (const json& row : kept["results"]) {
      const json& rounds = row[what == "lock" ? "rounds_ops_s" : "round_means_ns"];
      EXPECT_LT(rounds.size(), 1000U) << what;
      EXPECT_EQ(rounds.size(),
                kept["results"][0][what == "lock" ? "rounds_ops_s" : "round_means_ns"].size())
          << what;
    }
  }
  if (whole == 0) GTEST_SKIP() << "so busy that no round was whole";
}

TEST_F(Measure, PredictionsKeepWholeRowsOnCtrlC) {
  const std::vector<std::string> locks{"sim",     "lock", "--machine", "oak",
                                       "--locks", "all",  "--threads", "2,3,4,5,6,7"};
  std::vector<std::string> wandering = locks;
  wandering.insert(wandering.end(), {"--affinity", "none"});
  const std::vector<std::string> barriers{"sim",       "barrier", "--machine", "oak",
                                          "--members", "64",      "--seeds",   "1000"};
  unsigned whole = 0;
  for (const auto& words : {locks, wandering, barriers}) {
    const std::string results = words == barriers ? "sim" : "sim-lock";
    const json kept = stopped(words, folder_ / (results + std::to_string(words.size())), results);
    if (kept.is_null()) continue;
    ++whole;
    EXPECT_GT(kept["results"].size(), 0U);
    for (const json& row : kept["results"]) {
      EXPECT_EQ(words == wandering, row.value("placement", "") == "mean of all");
    }
  }
  if (whole == 0) GTEST_SKIP() << "so busy that no row was whole";
}

}  // namespace
