// SPDX-License-Identifier: BSD-3-Clause
// `muster check` as a user calls it. What it says of what does not hold, and how to see it again:
// test/cli/check_test.cpp.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "command.hpp"

namespace {

using nlohmann::json;

Outcome check(Words words) {
  words.insert(words.begin(), "check");
  return run_muster(words);
}

json results_of(Words words) {
  words.emplace_back("--json");
  const Outcome outcome = check(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return json::parse(outcome.out).at("results");
}

TEST(CheckCommand, PrintsOneRowPerProgram) {
  const json results = results_of({"--algorithms", "sense-reversing,mcs", "--participants", "2,3",
                                   "--episodes", "2", "--variant", "plain"});
  ASSERT_EQ(results.size(), 4U);
  const json& row = results[1];
  EXPECT_EQ(row["algorithm"], "sense-reversing");
  EXPECT_EQ(row["participants"], 3);
  EXPECT_EQ(row["episodes"], 2);
  EXPECT_EQ(row["executions"], 36);
  EXPECT_EQ(row["blocked"], 0);
  EXPECT_EQ(row["verdict"], "holds");
  EXPECT_GE(row["seconds"], 0.0);
}

double seconds_of_children() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  return static_cast<double>(used.ru_utime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec);
}

// All of what `muster check` does when it is told nothing. In processor time, so that other
// programs do not matter.
TEST(CheckCommand, CoversEverythingByDefaultWithinFourMinutes) {
  const double begin = seconds_of_children();
  const json results = results_of({});
  const double seconds = seconds_of_children() - begin;
  std::printf("all of it: %.1f s\n", seconds);
  EXPECT_LT(seconds, 240);
  EXPECT_GT(seconds, 1) << "it is not the time of what was explored";
  std::set<std::string> algorithms;
  std::set<std::string> variants;
  std::set<std::pair<unsigned, unsigned>> sizes;
  for (const json& row : results) {
    EXPECT_EQ(row["verdict"], "holds") << row;
    EXPECT_GT(row["executions"], 0) << row;
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

TEST(CheckCommand, KnowsLocksByTheirPrefix) {
  std::set<std::string> algorithms;
  for (const json& row : results_of({"--algorithms", "lock:mcs,mcs"})) {
    EXPECT_EQ(row["verdict"], "holds") << row;
    algorithms.insert(row["algorithm"]);
  }
  EXPECT_EQ(algorithms, (std::set<std::string>{"lock:mcs", "mcs"}));
}

TEST(CheckCommand, TakesABarriersNameForAllThatIsCheckedOfIt) {
  std::set<std::string> algorithms;
  for (const json& row :
       results_of({"--algorithms", "scheduled", "--participants", "2", "--variant", "plain"})) {
    algorithms.insert(row["algorithm"]);
  }
  EXPECT_EQ(algorithms.size(), 5U);
  EXPECT_EQ(algorithms.count("scheduled:count2+line1/count+line"), 1U);
}

TEST(CheckCommand, ShowsMutantsOfLocksAndMutexes) {
  const std::pair<std::string, std::string> mutants[] = {
      {"cc-synch: a link read after its slot is done", "cc-synch, 2 clients, 2 sections"},
      {"rings: requests without a number", "rings, 1 clients, 2 sections, rings"},
      {"mutex: a look after it was given", "spin-then-park, 2 participants, 1 section, freed"}};
  for (const auto& [mutant, variant] : mutants) {
    const Outcome outcome = check({"--mutant", mutant, "--variant", variant});
    EXPECT_EQ(outcome.exit_code, 1) << mutant;
    const std::string again =
        "again: muster check --mutant '" + mutant + "' --variant '" + variant + "'";
    EXPECT_NE(outcome.out.find(again), std::string::npos) << outcome.out;
  }
}

TEST(CheckCommand, SaysWhatRaces) {
  const json mutant = results_of({"--algorithms", "mcs", "--mutate"})[0];
  EXPECT_EQ(mutant["fate"], "caught");
  const std::string weaken =
      mutant["site"].get<std::string>() + "=" + mutant["weakened"].get<std::string>();
  const Outcome outcome = check({"--algorithms", "mcs", "--participants", "2", "--weaken", weaken});
  EXPECT_NE(outcome.out.find("data race on data of rank"), std::string::npos) << outcome.out;
}

TEST(CheckCommand, CountsWhatTheGateSays) {
  const Outcome outcome = check({"--algorithms", "lifetime", "--mutate"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("src/machine/lifetime.hpp:"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("4 mutants: 4 caught, 0 stronger on purpose, 0 unaccounted for"),
            std::string::npos)
      << outcome.out;
}

TEST(CheckCommand, SaysWhatIsWrongWithTheCommandLine) {
  for (const Words& words :
       {Words{"--algorithms", "lock:nonsense"}, Words{"--algorithms", "auto"},
        Words{"--algorithms", "mcs", "--groups", "0,1"},
        Words{"--algorithms", "topo", "--groups", "0,1|1"},
        Words{"--algorithms", "mcs", "--variant", "split"},
        Words{"--algorithms", "tournament", "--participants", "1", "--mutate"},
        // Said before anything is explored: with all algorithms that would take a minute.
        Words{"--weaken", "garbage"}, Words{"--weaken", "src/barrier/mcs.hpp:1"},
        Words{"--weaken", "mcs.hpp:1=weak"}, Words{"--weaken", "="}}) {
    const Outcome outcome = check(words);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "") << outcome.err;
  }
}

}  // namespace
