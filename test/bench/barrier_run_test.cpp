// SPDX-License-Identifier: BSD-3-Clause
// How contestants share a run: turns, equal times, the time that all of it takes, and what is told
// of it meanwhile.
#include "bench/barrier_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
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

/// What progress told, and when by the clock of the one who was told.
struct Told {
  Progress progress;
  double at_s = 0;
};

struct Turn {
  std::string name;
  double took_s = 0;  ///< since progress told of anything before: with what went before a turn
};

using Rounds = std::vector<std::vector<Turn>>;

/// Who had a turn in each round, in order.
Rounds rounds_in(const std::vector<Told>& told) {
  const std::regex turn("2 threads, round ([1-4]) of 4, (.*)");
  Rounds rounds(4);
  std::size_t last = 1;
  double before_s = 0;
  for (const auto& [progress, at_s] : told) {
    std::smatch found;
    if (std::regex_match(progress.what, found, turn)) {
      const std::size_t round = std::stoul(found[1]);
      EXPECT_GE(round, last) << "everyone's turn comes before anyone's next";
      last = std::max(last, round);
      rounds[round - 1].push_back({found[2], at_s - before_s});
    }
    before_s = at_s;
  }
  return rounds;
}

std::map<std::string, std::vector<double>> turns_of_each(const Rounds& rounds) {
  std::map<std::string, std::vector<double>> turns;
  for (const std::vector<Turn>& round : rounds) {
    for (const auto& [name, took_s] : round) turns[name].push_back(took_s);
  }
  return turns;
}

std::string names_in(const Rounds& rounds) {
  std::string text;
  for (const std::vector<Turn>& round : rounds) {
    text += " " + std::to_string(&round - rounds.data() + 1) + ")";
    for (const auto& [name, took_s] : round) text += " " + name + " " + std::to_string(took_s);
  }
  return text;
}

/// Everyone has one turn in each round, another one being first. Only who was held up before, by a
/// busy machine, may pause: whose turns took more than their slices.
void expect_turns(const Rounds& rounds, double slice_s) {
  std::map<std::string, double> used_s;
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    std::vector<std::string> expected;
    for (std::size_t i = 0; i < rounds[0].size(); ++i) {
      const std::string& name = rounds[0][(i + round) % rounds[0].size()].name;
      const auto found = std::find_if(rounds[round].begin(), rounds[round].end(),
                                      [&](const Turn& turn) { return turn.name == name; });
      const bool may_pause = used_s[name] > (static_cast<double>(round) + 0.5) * slice_s;
      if (found != rounds[round].end() || !may_pause || round == 0) expected.push_back(name);
    }
    std::vector<std::string> names;
    for (const auto& [name, took_s] : rounds[round]) {
      names.push_back(name);
      used_s[name] += took_s;
    }
    EXPECT_EQ(names, expected) << "in round " << round + 1 << " of" << names_in(rounds);
  }
}

/// The shortest turn of who has the longest one such, as a multiple of the least. Of those with
/// three turns: with fewer, all of them were held up, perhaps.
double shortest_turns_ratio(const Rounds& rounds) {
  double least = 1e9;
  double most = 0;
  for (const auto& [name, turns] : turns_of_each(rounds)) {
    if (turns.size() < 3) continue;
    const double shortest = *std::min_element(turns.begin(), turns.end());
    least = std::min(least, shortest);
    most = std::max(most, shortest);
  }
  return most / least;
}

void expect_rows(const Rounds& rounds, const RunResults& results, double slice_s) {
  const auto turns = turns_of_each(rounds);
  for (const Row& row : results.rows) {
    // An episode takes half a second and more where others have the CPUs, and that is noticed.
    EXPECT_TRUE(row.status == RowStatus::ok || results.noise.noisy)
        << row.implementation << ": " << row.reason;
    EXPECT_EQ(row.round_medians_ns.size(), 4U) << row.implementation;
    const std::vector<double>& own = turns.at(row.ours ? row.algorithm : row.implementation);
    // A tenth of each slice is for the skews, which may take less.
    EXPECT_GE(row.seconds, 0.9 * static_cast<double>(own.size()) * slice_s) << row.implementation;
    EXPECT_LE(row.seconds, std::accumulate(own.begin(), own.end(), 0.0)) << row.implementation;
  }
}

void expect_progress(const std::vector<Told>& told, double seconds) {
  for (std::size_t i = 0; i < told.size(); ++i) {
    const Progress& progress = told[i].progress;
    EXPECT_GE(progress.share, i == 0 ? 0 : told[i - 1].progress.share) << progress.what;
    EXPECT_LE(progress.share, 1) << progress.what;
    EXPECT_GE(progress.left_s, 0) << progress.what;
    EXPECT_LE(progress.left_s, i == 0 ? seconds : told[i - 1].progress.left_s) << progress.what;
  }
  EXPECT_LT(told.front().progress.share, 0.3);
  EXPECT_GT(told.back().progress.share, 0.8);
}

/// What holds of every run. Returns how much one's turns are longer than another's.
double look_at_a_run() {
  std::vector<Told> told;
  const RunOptions options = few_contestants();
  const auto begin = std::chrono::steady_clock::now();
  const RunResults results = run_barriers(options, [&](const Progress& progress) {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin;
    told.push_back({progress, since.count()});
  });
  const Rounds rounds = rounds_in(told);
  std::set<std::string> names;
  for (const auto& [name, took_s] : rounds.front()) names.insert(name);
  EXPECT_EQ(names, contestants);
  EXPECT_EQ(rounds.front().size(), contestants.size()) << "nobody has two turns in a round";
  EXPECT_EQ(results.rows.size(), contestants.size());
  if (testing::Test::HasFailure()) return 0;
  const auto first = std::find_if(told.begin(), told.end(), [](const Told& it) {
    return it.progress.what.find("round 1") != std::string::npos;
  });
  // Nobody's is less: there was more time left when it was shared out.
  const double slice_s =
      first->progress.left_s / static_cast<double>(rounds.size() * contestants.size());
  expect_turns(rounds, slice_s);
  expect_rows(rounds, results, slice_s);
  expect_progress(told, *options.seconds);
  return shortest_turns_ratio(rounds);
}

/// Where the machine is very busy, somebody's turns are all longer now and then.
TEST(RunBarriers, EveryoneHasATurnOfTheSameLengthInEachRound) {
  double ratio = look_at_a_run();
  for (unsigned again = 0; again < 60 && ratio > 1.4; ++again) ratio = look_at_a_run();
  EXPECT_LE(ratio, 1.4);
}

Row row_of(double low, double median, double high, RowStatus status = RowStatus::ok) {
  Row row;
  row.status = status;
  row.latency_ns.median = median;
  row.latency_ns.ci95 = {low, high};
  return row;
}

TEST(SurelyFastest, IsWhoseIntervalIsBelowTheFirstOnes) {
  const auto position = [](const std::vector<Row>& rows, bool noisy = false) {
    std::vector<const Row*> all;
    for (const Row& row : rows) all.push_back(&row);
    return surely_fastest(all, {.noisy = noisy, .why = ""});
  };
  const Row first = row_of(90, 100, 110);
  const Row meets = row_of(70, 75, 90);
  const Row faster = row_of(80, 85, 89);
  const Row fastest = row_of(60, 70, 80);
  EXPECT_EQ(position({first}), 0U);
  EXPECT_EQ(position({first, row_of(120, 130, 140), meets}), 0U);
  EXPECT_EQ(position({first, meets, faster}), 2U);
  EXPECT_EQ(position({first, faster, fastest, faster}), 2U);
  EXPECT_EQ(position({first, faster, fastest}, true), 0U) << "nothing is sure where it was noisy";
  const Row failed = row_of(1, 2, 3, RowStatus::did_not_finish);
  EXPECT_EQ(position({first, failed, faster}), 2U);
  EXPECT_EQ(position({failed, faster}), 0U) << "there is nothing to compare with";
}

TEST(LongestRun, EndsWithinFortySecondsByDefault) {
  // The rest is for the statistics.
  EXPECT_LE(longest_s(kSecondsDefault), 39);
  EXPECT_GE(kSecondsDefault, 20) << "there is no need to be in such a hurry";
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
  const double most_s = longest_s(*options.seconds) - 4;  // all of them start
  double elapsed_s = 1e9;
  unsigned stuck = 0;  // it hangs after 100 episodes, which a busy machine may not come to
  for (unsigned attempt = 0; attempt < 60 && (stuck == 0 || elapsed_s > most_s); ++attempt) {
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
