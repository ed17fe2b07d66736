// SPDX-License-Identifier: BSD-3-Clause
// What `muster check` says of what does not hold: a mutant for each of its words, and the command
// that it prints, typed into a shell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.hpp"

namespace {

using nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

/// What the gate says of some of the orders.
const json& table() {
  static const json some = json::parse(
      run_muster({"check", "--algorithms", "mcs,topo,sleep", "--mutate", "--json"}).out);
  return some;
}

/// An access of this algorithm, and the order that it must not have.
std::string weakened(const std::string& algorithm) {
  for (const json& mutant : table().at("results")) {
    if (mutant.at("algorithm") != algorithm || mutant.at("fate") != "caught") continue;
    return mutant.at("site").get<std::string>() + "=" + mutant.at("weakened").get<std::string>();
  }
  return "";
}

/// What somebody sees who types it, this build's `muster` being the one that is installed.
Outcome typed(const std::string& command) {
  const std::string folder = std::filesystem::path(MUSTER_PROGRAM).parent_path();
  const std::string line = "PATH='" + folder + "':$PATH; " + command + " 2>&1";
  Outcome outcome;
  std::FILE* const shell = popen(line.c_str(), "r");
  if (shell == nullptr) return outcome;
  char part[4096];
  for (std::size_t got = 0; (got = std::fread(part, 1, sizeof part, shell)) > 0;) {
    outcome.out.append(part, got);
  }
  const int status = pclose(shell);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

/// The row that a command prints with this verdict; the others hold.
json bad_row(Words words, const std::string& verdict) {
  words.emplace_back("--json");
  const Outcome outcome = run_muster(words);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("programs that do not hold"));
  json bad;
  const json all = json::parse(outcome.out);
  for (const json& row : all.at("results")) {
    EXPECT_EQ(row.contains("replay"), row.at("verdict") != "holds") << row;
    EXPECT_EQ(row.contains("trace"), row.at("verdict") != "holds") << row;
    if (row.at("verdict") == verdict && bad.is_null()) bad = row;
  }
  return bad;
}

void expect_again(const json& bad) {
  const std::string replay = bad.at("replay");
  const std::string trace = bad.at("trace");
  const Outcome again = typed(replay);
  EXPECT_EQ(again.exit_code, 1) << again.out;
  EXPECT_THAT(again.out, HasSubstr(" " + bad.at("verdict").get<std::string>() + " "));
  EXPECT_THAT(again.out, HasSubstr(trace));
  EXPECT_THAT(again.out, HasSubstr("again: " + replay + "\n"));
  EXPECT_THAT(again.out, HasSubstr("programs that do not hold: 1 of 1"));
}

class VerdictOfCheck : public testing::TestWithParam<const char*> {
 protected:
  static Words words_for(const std::string& verdict) {
    if (verdict == "violated") return {"check", "--mutant", "sense not reversed"};
    if (verdict == "hang") {
      return {"check", "--algorithms", "sleep", "--variant", "one", "--weaken", weakened("sleep")};
    }
    return {"check", "--algorithms", "mcs",          "--participants", "2", "--episodes",
            "2",     "--weaken",     weakened("mcs")};
  }
};

TEST_P(VerdictOfCheck, IsGivenWithATraceAndACommandThatGivesItAgain) {
  const json bad = bad_row(words_for(GetParam()), GetParam());
  ASSERT_FALSE(bad.is_null());
  EXPECT_THAT(bad.at("trace").get<std::string>(), HasSubstr("#1  "));
  EXPECT_THAT(bad.at("replay").get<std::string>(), testing::StartsWith("muster check --"));
  expect_again(bad);
}

INSTANTIATE_TEST_SUITE_P(All, VerdictOfCheck, testing::Values("violated", "hang", "race"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(Check, TheWeakeningThatItNamesForAnExampleIsOne) {
  const Words words{"check", "--algorithms", "mcs", "--participants", "2", "--weaken"};
  const auto weaken = [&](const std::string& text) {
    Words all = words;
    all.push_back(text);
    return run_muster(all);
  };
  const std::string said = weaken("src/barrier/mcs.hpp:1=relaxed").err;
  const std::string before = "such as ";
  const std::size_t at = said.find(before) + before.size();
  ASSERT_GT(at, before.size()) << said;
  const Outcome outcome = weaken(said.substr(at, said.find('\n', at) - at));
  EXPECT_NE(outcome.exit_code, 2) << said << outcome.err;
}

// To look for it in all programs takes minutes.
TEST(Check, AFileThatDoesNotExistIsNotLookedFor) {
  const Outcome outcome = run_muster({"check", "--weaken", "src/barrier/none.hpp:1=relaxed"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no barrier or lock has \"src/barrier/none.hpp\""));
}

// What a shell would take for pipes.
TEST(Check, ACommandWithGroupsIsQuoted) {
  const json bad = bad_row({"check", "--algorithms", "topo", "--groups", "0,2|1,3/0,1",
                            "--episodes", "2", "--variant", "plain", "--weaken", weakened("topo")},
                           "race");
  ASSERT_FALSE(bad.is_null());
  EXPECT_THAT(bad.at("replay").get<std::string>(), HasSubstr("'0,2|1,3/0,1'"));
  expect_again(bad);
}

TEST(Check, GroupsAreForAllThatIsChosen) {
  const Words words{"check", "--groups", "0,1|2,3/0,2", "--algorithms"};
  for (const Words& more : {Words{"topo", "--participants", "3"}, Words{"mcs"}, Words{"lock:mcs"},
                            Words{"mutex:mcs"}, Words{"topo,sleep"}, Words{"topo", "--mutate"}}) {
    Words all = words;
    all.insert(all.end(), more.begin(), more.end());
    const Outcome outcome = run_muster(all);
    EXPECT_EQ(outcome.exit_code, 2) << more.back();
    EXPECT_THAT(outcome.err, HasSubstr("--groups")) << more.back();
  }
}

TEST(Check, UnknownMutantsAreToldTheNames) {
  const Outcome outcome = run_muster({"check", "--mutant", "nonsense"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("\"sense not reversed\""));
}

}  // namespace
