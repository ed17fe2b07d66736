// SPDX-License-Identifier: BSD-3-Clause
// `muster compare` on the command line: what it refuses, and its exit code. What it tells from
// chance is test/bench/compare_test.cpp's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "command.hpp"

namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class CompareFiles : public CommandTest {
 protected:
  /// A run of two of ours and five others; nobody's times are twice the same.
  std::string write(const std::string& name, double ours_times, const std::string& model = "m",
                    const std::string& map_by = "core") {
    Json json{{"schema", 1},
              {"benchmark", "barrier"},
              {"machine", {{"model", model}, {"cpus", 2}, {"architecture", "a"}}},
              {"build", {{"commit", name}}},
              {"settings", {{"map_by", map_by}}},
              {"results", Json::array()}};
    for (int i = 0; i < 7; ++i) {
      Json rounds = Json::array();
      for (int round = 0; round < 5; ++round) {
        const double noise =
            0.002 * std::sin(1 + round + 7 * i + 3.0 * static_cast<double>(name.size()));
        rounds.push_back(100.0 * (i + 1) * (i < 2 ? ours_times : 1) * (1 + noise));
      }
      json["results"].push_back({{"implementation", i < 2 ? "muster" : "p" + std::to_string(i)},
                                 {"algorithm", "a" + std::to_string(i)},
                                 {"via", "c"},
                                 {"participants", 2},
                                 {"mode", "threads"},
                                 {"regime", nullptr},
                                 {"status", "ok"},
                                 {"rank", i},
                                 {"round_means_ns", rounds}});
    }
    return write(name, json.dump());
  }
  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    ::write(path, text);
    return path;
  }
};

TEST_F(CompareFiles, EndsWithOneWhereTheLimitIsExceeded) {
  const std::string old_run = write("old", 1);
  const std::string slower = write("slower", 1.5);
  EXPECT_EQ(
      run_muster({"compare", old_run, write("same one", 1), "--fail-if", "slower:5%"}).exit_code,
      0);
  const Outcome told = run_muster({"compare", old_run, slower});
  EXPECT_EQ(told.exit_code, 0) << "nobody asked it to fail";
  EXPECT_THAT(told.out, HasSubstr("slower"));
  EXPECT_EQ(run_muster({"compare", old_run, slower, "--fail-if", "slower:5%"}).exit_code, 1);
  EXPECT_EQ(run_muster({"compare", old_run, slower, "--fail-if", "slower:60%"}).exit_code, 0);
  EXPECT_EQ(run_muster({"compare", old_run, slower, "--fail-if", "faster:5%"}).exit_code, 0);
  EXPECT_EQ(run_muster({"compare", slower, old_run, "--fail-if", "faster:5%"}).exit_code, 1);
  const Outcome json = run_muster({"compare", old_run, slower, "--json", "--fail-if", "slower:5%"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(Json::parse(json.out).at("schema"), 1);
}

TEST_F(CompareFiles, TellsThatRunsWereNoisy) {
  const std::string quiet = write("quiet", 1);
  Json json = Json::parse(std::ifstream(quiet));
  json["verdict"] = "quiet";
  const std::string also_quiet = write("also quiet", json.dump());
  json["verdict"] = "noisy";
  const std::string noisy = write("noisy", json.dump());
  EXPECT_THAT(run_muster({"compare", quiet, noisy}).out, HasSubstr("0 of 1 old and 1 of 1 new"));
  EXPECT_THAT(run_muster({"compare", also_quiet, quiet}).out, Not(HasSubstr("noisy")));
  const Outcome told = run_muster({"compare", noisy, quiet, "--json"});
  EXPECT_EQ(Json::parse(told.out).at("noisy"), Json({1, 0}));
}

TEST_F(CompareFiles, TakesFoldersOfSeveralRuns) {
  for (const char* name : {"a/barrier.json", "a/barrier.1.json", "a/barrier.12.json"})
    write(name, 1);
  for (const char* name : {"b/barrier.json", "b/barrier.1.json"}) write(name, 1.5);
  write("a/sim.json", R"({"schema": 1, "results": []})");
  const Outcome told =
      run_muster({"compare", folder_ / "a", folder_ / "b", "--json", "--fail-if", "slower:20%"});
  EXPECT_EQ(told.exit_code, 1) << told.err;
  EXPECT_EQ(Json::parse(told.out).at("runs"), Json({3, 2}));
  const auto refused = [&](const std::string& other, const std::string& says) {
    const Outcome outcome = run_muster({"compare", folder_ / "a", other});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(says));
  };
  refused(write("alone", 1), "3 old and 1 new runs");
  write("two/lock.json", R"({"schema": 1, "benchmark": "lock"})");
  refused(folder_ / "two", "lock.json: not whole");
  write("c/none.json", "{}");
  refused(folder_ / "c", "no run of bench barrier, lock or mpi");
}

TEST_F(CompareFiles, AndSummariesSendATerminalNothingOfAFilesOwn) {
  const std::string evil = "m\x1b]0;title\a";
  const std::string path = write("barrier.json", 1, evil);
  for (const auto& words : {std::vector<std::string>{"compare", path, path},
                            {"bench", "summary", folder_},
                            {"sim", "barrier", "--machine", "oak", "--ranks", "4", "--algorithms",
                             "mcs", "--output", folder_ / evil}}) {
    const Outcome outcome = run_muster(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ((outcome.out + outcome.err).find('\x1b'), std::string::npos) << words.front();
  }
  EXPECT_THAT(run_muster({"compare", path, path}).out, HasSubstr("m\\x1b]0;title\\x07"));
  EXPECT_THAT(run_muster({"compare", path, write("key", "{\"\\u001b\": 1}")}).err,
              HasSubstr("a name with control characters"));
}

TEST_F(CompareFiles, RefusesWhatCannotBeCompared) {
  const std::string old_run = write("old", 1);
  const auto refused = [&](const std::string& other, const std::string& says) {
    const Outcome outcome = run_muster({"compare", old_run, other});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(says));
  };
  refused(write("model", 1, "another"), "these cannot be compared");
  refused(write("mapped", 1, "m", "numa"), "these cannot be compared");
  refused(write("empty", ""), "no JSON object");
  refused(write("list", "[1, 2]"), "");
  refused(write("schema", R"({"schema": 99, "benchmark": "barrier"})"), "schema");
  refused(write("sim", R"({"schema": 1, "results": []})"), "bench barrier");
  EXPECT_EQ(run_muster({"compare", old_run, "/nowhere"}).exit_code, 2);
  for (const char* limit :
       {"slower", "slower:5", "later:5%", "slower:-1%", "slower:x%", "slower:inf%"}) {
    EXPECT_EQ(run_muster({"compare", old_run, old_run, "--fail-if", limit}).exit_code, 2) << limit;
  }
  EXPECT_EQ(run_muster({"compare", old_run, write("model", 1, "another"), "--anyway"}).exit_code,
            0);
}

}  // namespace
