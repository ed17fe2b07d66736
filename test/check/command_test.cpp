// SPDX-License-Identifier: BSD-3-Clause
// `muster check` as a user calls it.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/check.hpp"
#include "cli/command.hpp"
#include "machine/error.hpp"

namespace muster {
namespace {

struct Answer {
  std::string text;
  Status failure = Status::ok;
};

Answer run(std::vector<std::string> arguments) {
  CLI::App app;
  Command root(&app);
  add_check(root, run_check);
  std::reverse(arguments.begin(), arguments.end());
  arguments.emplace_back("check");
  Answer answer;
  ::testing::internal::CaptureStdout();
  try {
    app.parse(std::move(arguments));
  } catch (const Error& error) {
    answer.failure = error.code();
  }
  answer.text = ::testing::internal::GetCapturedStdout();
  return answer;
}

TEST(CheckCommand, PrintsOneRowPerProgram) {
  const Answer answer = run({"--algorithms", "sense-reversing,mcs", "--participants", "2,3",
                             "--episodes", "2", "--variant", "plain", "--json"});
  EXPECT_EQ(answer.failure, Status::ok);
  const auto json = nlohmann::json::parse(answer.text);
  ASSERT_EQ(json["results"].size(), 4U);
  const auto& row = json["results"][1];
  EXPECT_EQ(row["algorithm"], "sense-reversing");
  EXPECT_EQ(row["participants"], 3);
  EXPECT_EQ(row["episodes"], 2);
  EXPECT_EQ(row["executions"], 36);
  EXPECT_EQ(row["blocked"], 0);
  EXPECT_EQ(row["verdict"], "holds");
  EXPECT_GE(row["seconds"], 0.0);
}

// All of what `muster check` does when it is told nothing. In processor time (it has one thread),
// so that other programs do not matter.
TEST(CheckCommand, CoversEverythingByDefaultWithinFourMinutes) {
  const std::clock_t start = std::clock();
  const Answer answer = run({"--json"});
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("all of it: %.1f s\n", seconds);
  EXPECT_LT(seconds, 240);
  EXPECT_EQ(answer.failure, Status::ok);
  const auto json = nlohmann::json::parse(answer.text);
  std::set<std::string> algorithms;
  std::set<std::string> variants;
  std::set<std::pair<unsigned, unsigned>> sizes;
  for (const auto& row : json["results"]) {
    EXPECT_EQ(row["verdict"], "holds") << row.dump();
    EXPECT_GT(row["executions"], 0) << row.dump();
    algorithms.insert(row["algorithm"]);
    variants.insert(row["variant"]);
    if (row["variant"] == "plain") sizes.emplace(row["participants"], row["episodes"]);
  }
  for (const unsigned participants : {2U, 3U, 4U}) {
    for (const unsigned episodes : {2U, 3U}) {
      EXPECT_EQ(sizes.count({participants, episodes}), 1U) << participants << " " << episodes;
    }
  }
  for (const char* name : {"sense-reversing", "sense-reversing-counter", "sense-reversing-gr",
                           "combining-tree", "combining-tree:3", "mcs", "tournament",
                           "dissemination", "topo", "topo-counter", "sleep"}) {
    EXPECT_EQ(algorithms.count(name), 1U) << name;
  }
  for (const char* name :
       {"plain", "wraps", "split", "gives-up", "timed", "destroy", "reuse", "bell"}) {
    EXPECT_EQ(variants.count(name), 1U) << name;
  }
}

TEST(CheckCommand, PrintsTheExecutionAndHowToSeeItAgain) {
  const auto table = nlohmann::json::parse(run({"--algorithms", "mcs", "--mutate", "--json"}).text);
  ASSERT_FALSE(table["results"].empty());
  const auto& mutant = table["results"][0];
  EXPECT_EQ(mutant["fate"], "caught");
  const std::string weaken =
      mutant["site"].get<std::string>() + "=" + mutant["weakened"].get<std::string>();
  const std::vector<std::string> again = {"--algorithms", "mcs", "--participants", "2",
                                          "--episodes",   "2",   "--variant",      "plain",
                                          "--weaken",     weaken};
  const Answer answer = run(again);
  EXPECT_EQ(answer.failure, Status::broken);
  EXPECT_NE(answer.text.find("data race on"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find("from rank"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find("again: muster check --algorithms mcs --participants 2 --episodes 2 "
                             "--variant plain --weaken " +
                             weaken),
            std::string::npos)
      << answer.text;
}

TEST(CheckCommand, TakesGroups) {
  const auto json = nlohmann::json::parse(
      run({"--algorithms", "topo", "--groups", "0,2,4|1,3/0,1", "--episodes", "2", "--json"}).text);
  ASSERT_EQ(json["results"].size(), 1U);
  EXPECT_EQ(json["results"][0]["participants"], 5);
  EXPECT_EQ(json["results"][0]["groups"], "0,2,4|1,3/0,1");
}

TEST(CheckCommand, KnowsLocksByTheirPrefix) {
  const auto json = nlohmann::json::parse(run({"--algorithms", "lock:mcs,mcs", "--json"}).text);
  std::set<std::string> algorithms;
  for (const auto& row : json["results"]) {
    EXPECT_EQ(row["verdict"], "holds") << row.dump();
    algorithms.insert(row["algorithm"]);
  }
  EXPECT_EQ(algorithms, (std::set<std::string>{"lock:mcs", "mcs"}));
  EXPECT_EQ(run({"--algorithms", "lock:nonsense"}).failure, Status::unknown_name);
}

TEST(CheckCommand, ShowsMutantsOfLocksAndMutexes) {
  const std::pair<std::string, std::string> mutants[] = {
      {"cc-synch: a link read after its slot is done", "cc-synch, 2 clients, 2 sections"},
      {"rings: requests without a number", "rings, 1 clients, 2 sections, rings"},
      {"mutex: a look after it was given", "spin-then-park, 2 participants, 1 section, freed"}};
  for (const auto& [mutant, variant] : mutants) {
    const Answer answer = run({"--mutant", mutant, "--variant", variant});
    EXPECT_EQ(answer.failure, Status::broken) << mutant;
    const std::string again =
        "again: muster check --mutant '" + mutant + "' --variant '" + variant + "'";
    EXPECT_NE(answer.text.find(again), std::string::npos) << answer.text;
  }
}

TEST(CheckCommand, CountsWhatTheGateSays) {
  const Answer answer = run({"--algorithms", "lifetime", "--mutate"});
  EXPECT_EQ(answer.failure, Status::ok);
  EXPECT_NE(answer.text.find("src/machine/lifetime.hpp:"), std::string::npos) << answer.text;
  EXPECT_NE(answer.text.find("4 mutants: 4 caught, 0 stronger on purpose, 0 unaccounted for"),
            std::string::npos)
      << answer.text;
}

TEST(CheckCommand, SaysWhatIsWrongWithTheCommandLine) {
  EXPECT_EQ(run({"--algorithms", "nonsense"}).failure, Status::unknown_name);
  EXPECT_EQ(run({"--algorithms", "auto"}).failure, Status::invalid);
  EXPECT_EQ(run({"--algorithms", "mcs", "--groups", "0,1"}).failure, Status::invalid);
  EXPECT_EQ(run({"--algorithms", "topo", "--groups", "0,1|1"}).failure, Status::invalid);
  EXPECT_EQ(run({"--algorithms", "mcs", "--variant", "split"}).failure, Status::invalid);
  EXPECT_EQ(run({"--algorithms", "tournament", "--participants", "1", "--mutate"}).failure,
            Status::invalid);
  EXPECT_EQ(run({"--algorithms", "mcs", "--weaken", "src/barrier/mcs.hpp:1=relaxed"}).failure,
            Status::invalid);
  // Said before anything is explored: with all algorithms that would take a minute.
  for (const char* const weaken : {"garbage", "src/barrier/mcs.hpp:1", "mcs.hpp:1=weak", "="}) {
    const Answer answer = run({"--weaken", weaken});
    EXPECT_EQ(answer.failure, Status::invalid) << weaken;
    EXPECT_EQ(answer.text, "") << weaken;
  }
}

}  // namespace
}  // namespace muster
