// SPDX-License-Identifier: BSD-3-Clause
// Exit codes, help and messages, and `muster list`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "program.hpp"

namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

TEST(Cli, HelpAndVersionSucceed) {
  for (const Words& words :
       {Words{"--help"}, Words{"-h"}, Words{"topo", "--help"}, Words{"list", "--help"},
        Words{"bench", "--help"}, Words{"bench", "barrier", "--help"}}) {
    const Outcome outcome = run_muster(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("Usage"));
    EXPECT_EQ(outcome.err, "");
  }
  const Outcome outcome = run_muster({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("muster [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Cli, MistakesInTheCommandLineAreTwo) {
  const struct {
    Words words;
    const char* says;
  } mistakes[] = {
      {{}, "there are: "},
      {{"nonsense"}, "no command \"nonsense\"; there are: "},
      {{"--nonsense"}, "--nonsense"},
      {{"bench"}, "barrier"},
      {{"bench", "nonsense"}, "no command \"nonsense\"; there are: barrier"},
      {{"topo", "--nonsense"}, "muster topo --help"},
      {{"topo", "--ranks", "many"}, "--ranks"},
      {{"bench", "barrier", "--algorithms", "nonsense"}, "sense-reversing-counter"},
      {{"bench", "barrier", "--algorithms", "topo-NONSENSE"}, "NUMA"},
      {{"bench", "barrier", "--peers", "nonsense"}, "pthread_barrier, std::barrier, libgomp"},
      {{"bench", "barrier", "--mode", "nonsense"}, "there are: threads, processes"},
      {{"bench", "barrier", "--map-by", "nonsense"}, "core, numa, socket, none"},
      {{"bench", "barrier", "--wait", "nonsense"}, "spin-yield-sleep"},
      {{"bench", "barrier", "--participants", "0"}, "1 to 4096"},
      {{"bench", "barrier", "--participants", "5000"}, "1 to 4096"},
      {{"bench", "barrier", "--participants", "x"}, "--participants"},
      {{"bench", "barrier", "--seconds", "0"}, "--seconds"},
      {{"bench", "barrier", "--seconds", "nan"}, "--seconds"},
      {{"bench", "barrier", "--rounds", "0"}, "--rounds"},
      {{"bench", "barrier", "--json", "--csv"}, "--csv"},
  };
  for (const auto& mistake : mistakes) {
    const Outcome outcome = run_muster(mistake.words);
    EXPECT_EQ(outcome.exit_code, 2) << mistake.says;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("muster: "));
    EXPECT_THAT(outcome.err, HasSubstr(mistake.says));
    EXPECT_THAT(outcome.err, EndsWith("\n"));
  }
}

TEST(Cli, FailuresAreOne) {
  const Outcome outcome = run_muster({"bench", "barrier", "--output", "/proc/nowhere"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, StartsWith("muster: /proc/nowhere"));
}

TEST(Cli, AFullDiskIsNoSuccess) {
  const std::string command = std::string(MUSTER_PROGRAM) + " list >/dev/full 2>/dev/null";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
}

TEST(List, HasEverythingThatCanBeAskedFor) {
  const Outcome outcome = run_muster({"list", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::set<std::pair<std::string, std::string>> found;
  const json list = json::parse(outcome.out);
  for (const json& entry : list.at("results")) {
    found.emplace(entry.at("kind").get<std::string>(), entry.at("name").get<std::string>());
    if (entry.at("kind") == "algorithm" && entry.at("name") != "auto") {
      for (const char* field : {"champion", "splits", "cost", "source"}) {
        EXPECT_TRUE(entry.contains(field)) << entry;
      }
    }
    if (entry.at("kind") == "peer") {
      EXPECT_TRUE(entry.at("available").is_boolean()) << entry;
      EXPECT_EQ(entry.at("missing").is_null(), entry.at("available").get<bool>()) << entry;
    }
  }
  for (const char* name :
       {"auto", "sense-reversing", "sense-reversing-counter", "sense-reversing-gr",
        "combining-tree", "mcs", "tournament", "dissemination", "topo"}) {
    EXPECT_TRUE(found.count({"algorithm", name}) == 1) << name;
  }
  for (const char* name : {"CORE", "L1", "L2", "L3", "NUMA", "GROUP", "DIE", "PACKAGE"}) {
    EXPECT_TRUE(found.count({"level", name}) == 1) << name;
  }
  for (const char* name : {"core", "numa", "socket", "none"}) {
    EXPECT_TRUE(found.count({"mapping", name}) == 1) << name;
  }
  for (const char* name : {"auto", "spin", "yield", "sleep", "spin-yield-sleep", "yield-sleep"}) {
    EXPECT_TRUE(found.count({"wait", name}) == 1) << name;
  }
  for (const char* name : {"pthread_barrier", "std::barrier", "libgomp", "libomp", "ck-centralized",
                           "ck-combining", "ck-dissemination", "ck-mcs", "ck-tournament"}) {
    EXPECT_TRUE(found.count({"peer", name}) == 1) << name;
  }
  EXPECT_EQ(outcome.out.find("test-stuck"), std::string::npos);

  const Outcome text = run_muster({"list"});
  ASSERT_EQ(text.exit_code, 0);
  for (const auto& [kind, name] : found) EXPECT_THAT(text.out, HasSubstr("  " + name)) << kind;
}

}  // namespace
