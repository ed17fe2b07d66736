// SPDX-License-Identifier: BSD-3-Clause
// How contestants share a run: turns, equal times, the time that all of it takes, and what is told
// of it meanwhile.
#include "bench/barrier_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace muster::bench {
namespace {

RunOptions few_contestants() {
  RunOptions options;
  options.algorithms = {"sense-reversing", "dissemination"};
  options.peers = {"pthread_barrier"};
  options.participants = {2};
  options.seconds = 1.2;
  options.rounds = 4;
  return options;
}

const std::set<std::string> contestants{"sense-reversing", "dissemination", "pthread_barrier",
                                        "limit", "ping-pong"};

using Rounds = std::vector<std::vector<std::string>>;

/// Who had a turn in each round, in order, as progress tells of it.
Rounds rounds_in(const std::vector<Progress>& told) {
  const std::regex turn("2 threads, round ([1-4]) of 4, (.*)");
  Rounds rounds(4);
  std::size_t last = 1;
  for (const Progress& progress : told) {
    std::smatch found;
    if (!std::regex_match(progress.what, found, turn)) continue;
    const std::size_t round = std::stoul(found[1]);
    EXPECT_GE(round, last) << "everyone's turn comes before anyone's next";
    last = std::max(last, round);
    rounds[round - 1].push_back(found[2]);
  }
  for (const std::vector<std::string>& names : rounds) {
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size())
        << "nobody has two turns in a round";
  }
  return rounds;
}

std::string fault_in_turns(const Rounds& rounds) {
  std::set<std::string> first;
  for (const std::vector<std::string>& names : rounds) {
    if (std::set<std::string>(names.begin(), names.end()) != contestants) {
      std::string text = "somebody has no turn in a round:";
      for (const std::vector<std::string>& others : rounds) {
        text += " " + std::to_string(&others - rounds.data() + 1) + ")";
        for (const std::string& name : others) text += " " + name;
      }
      return text;
    }
    first.insert(names.front());
  }
  return first.size() == rounds.size() ? "" : "the same one begins twice";
}

std::string fault_in_times(const RunResults& results) {
  double least = 1e9;
  double most = 0;
  for (const Row& row : results.rows) {
    if (row.status != RowStatus::ok) return row.implementation + ": " + row.reason;
    if (row.round_medians_ns.size() != 4) return row.implementation + " has not four rounds";
    least = std::min(least, row.seconds);
    most = std::max(most, row.seconds);
  }
  // Each slice is ended by its own participants' clock, after a batch.
  if (least > 0.7 * most) return "";
  return "times from " + std::to_string(least) + " to " + std::to_string(most) + " s";
}

std::string fault_in_progress(const std::vector<Progress>& told, double seconds) {
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_GE(told[i].share, 0);
    EXPECT_LE(told[i].share, 1);
    EXPECT_GE(told[i].left_s, 0);
    if (told[i].left_s > seconds) return "more time left than there was";
    if (i == 0) continue;
    if (told[i].share < told[i - 1].share) return "the share falls";
    if (told[i].left_s > told[i - 1].left_s) return "the time left grows";
  }
  if (told.front().share > 0.3) return "it begins late";
  return told.back().share < 0.8 ? "it ends early" : "";
}

// On a busy machine whoever took too long pauses, and what is lost by it is added: only runs that
// find themselves quiet are judged.
TEST(RunBarriers, EveryoneHasATurnOfTheSameLengthInEachRound) {
  std::string fault = "not run";
  unsigned judged = 0;
  for (unsigned attempt = 0; attempt < 4 && judged < 3 && !fault.empty(); ++attempt) {
    std::vector<Progress> told;
    const RunOptions options = few_contestants();
    const RunResults results =
        run_barriers(options, [&](const Progress& progress) { told.push_back(progress); });
    ASSERT_EQ(results.rows.size(), contestants.size());
    fault = fault_in_turns(rounds_in(told));
    if (fault.empty()) fault = fault_in_times(results);
    if (fault.empty()) fault = fault_in_progress(told, options.seconds);
    if (!results.noise.noisy) ++judged;
  }
  if (!fault.empty() && judged < 3) GTEST_SKIP() << "others want the CPUs: " << fault;
  EXPECT_EQ(fault, "");
}

TEST(LongestRun, EndsWithinFortySecondsByDefault) {
  // The rest is for the statistics.
  EXPECT_LE(longest_s(RunOptions{}.seconds), 39);
  EXPECT_GE(RunOptions{}.seconds, 20) << "there is no need to be in such a hurry";
  EXPECT_DOUBLE_EQ(longest_s(40), 55);
  EXPECT_DOUBLE_EQ(longest_s(1), 8);
}

// Each that hangs gets some overtime, and all of them no more than there is.
TEST(LongestRun, IsKeptByOneInWhichSomeHang) {
  RunOptions options;
  options.algorithms = {"sense-reversing"};
  options.peers = {"none"};
  options.hidden = {"test-stuck"};
  options.participants = {2};
  options.modes = {Mode::threads, Mode::processes};
  options.seconds = 0.7;
  const double most_s = longest_s(options.seconds) - 4;  // all of them start
  double elapsed_s = 1e9;
  unsigned stuck = 0;  // it hangs after 100 episodes, which a busy machine may not come to
  for (unsigned attempt = 0; attempt < 5 && (stuck == 0 || elapsed_s > most_s); ++attempt) {
    const RunResults results = run_barriers(options, [](const Progress&) {});
    elapsed_s = results.elapsed_s;
    stuck = 0;
    for (const Row& row : results.rows) {
      if (row.status == RowStatus::did_not_finish && row.implementation == "test-stuck") ++stuck;
    }
  }
  EXPECT_GT(stuck, 0U);
  EXPECT_LE(elapsed_s, most_s);
}

}  // namespace
}  // namespace muster::bench
