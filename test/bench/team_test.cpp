// SPDX-License-Identifier: BSD-3-Clause
// Every contestant really synchronizes, in every mode it claims. Those that hang, die or decline:
// test/cli/bench_barrier_test.cpp.
#include "bench/team.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <string>

#include "bench/barrier_run.hpp"

namespace muster::bench {
namespace {

constexpr std::int64_t kLong_ns = 600'000'000'000;

TeamSpec spec_of(const Other* what, unsigned participants, Mode mode) {
  TeamSpec spec;
  spec.other = what;
  spec.setting.participants = participants;
  spec.setting.mode = mode;
  spec.setting.algorithm = "auto";
  spec.setting.oversubscribed = true;
  spec.batch_ns = 1000;
  return spec;
}

void expect_no_children() {
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

struct Case {
  const Other* other;  // null: ours
  unsigned participants;
  Mode mode;
  bool through_template;
};

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  std::string name = c.other == nullptr ? "muster" : std::string(c.other->name);
  if (c.through_template) name += "_template";
  name += "_" + std::to_string(c.participants) + "_" + std::string(mode_name(c.mode));
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Mode mode : {Mode::threads, Mode::processes}) {
    for (const unsigned participants : {1U, 2U, 3U}) {
      cases.push_back({nullptr, participants, mode, false});
      cases.push_back({nullptr, participants, mode, true});
      for (const Other& candidate : others()) {
        if (candidate.kind == Other::hidden || !why_missing(candidate).empty()) continue;
        if (candidate.only_participants != 0 && candidate.only_participants != participants)
          continue;
        if (mode == Mode::threads ? candidate.threads : candidate.processes) {
          cases.push_back({&candidate, participants, mode, false});
        }
      }
    }
  }
  return cases;
}

class EveryContestant : public testing::TestWithParam<Case> {};

TEST_P(EveryContestant, RunsSlicesAndReports) {
  TeamSpec spec = spec_of(GetParam().other, GetParam().participants, GetParam().mode);
  spec.setting.through_template = GetParam().through_template;
  {
    Team team(spec);
    ASSERT_EQ(team.await_idle(clock_ns() + kLong_ns), Team::State::idle) << team.error();
    for (int slice = 0; slice < 2; ++slice) {
      team.start_slice(1'000'000);
      ASSERT_EQ(team.await_idle(clock_ns() + kLong_ns), Team::State::idle) << team.error();
      const std::vector<double> samples = team.take_samples();
      EXPECT_FALSE(samples.empty());
      for (const double sample : samples) EXPECT_GT(sample, 0);
      EXPECT_FALSE(team.exit_skews().empty());
      EXPECT_TRUE(team.take_samples().empty()) << "samples were given twice";
    }
    EXPECT_GE(team.episodes(), 4U);
    team.quit();
  }
  expect_no_children();
}

TEST_P(EveryContestant, RunsTurnsUntilTheyAreEnded) {
  TeamSpec spec = spec_of(GetParam().other, GetParam().participants, GetParam().mode);
  spec.setting.through_template = GetParam().through_template;
  spec.by_turns = true;
  Team team(spec);
  ASSERT_EQ(team.await_idle(clock_ns() + kLong_ns), Team::State::idle) << team.error();
  double episodes = 0;
  for (int turn = 0; turn < 3; ++turn) {
    team.start_slice(1'000'000);
    EXPECT_EQ(team.await_idle(clock_ns() + 1'000'000), Team::State::busy) << "nobody ended it";
    team.end_turn();
    ASSERT_EQ(team.await_idle(clock_ns() + kLong_ns), Team::State::idle) << team.error();
    EXPECT_FALSE(team.singles().empty());
    EXPECT_GT(team.timed().episodes, episodes);
    episodes = team.timed().episodes;
  }
  EXPECT_GT(team.timed().ns, 0);
  EXPECT_EQ(static_cast<double>(team.episodes()), episodes);
  team.quit();
}

TEST(Team, TheLastOneIsAsLateAsSaid) {
  for (const Mode mode : {Mode::threads, Mode::processes}) {
    TeamSpec spec = spec_of(nullptr, 3, mode);
    spec.by_turns = true;
    spec.late_ns = 3'000'000;
    Team team(spec);
    ASSERT_EQ(team.await_idle(clock_ns() + kLong_ns), Team::State::idle) << team.error();
    team.start_slice(1'000'000);
    EXPECT_EQ(team.await_idle(clock_ns() + 30'000'000), Team::State::busy);
    team.end_turn();
    ASSERT_EQ(team.await_idle(clock_ns() + kLong_ns), Team::State::idle) << team.error();
    // Rank 0 may have left the junction after the first nap.
    EXPECT_GE(team.timed().ns, 3e6 * (team.timed().episodes - 1));
    team.quit();
  }
}

INSTANTIATE_TEST_SUITE_P(Bench, EveryContestant, testing::ValuesIn(all_cases()), name_of_case);

TEST(Team, BindsItsParticipants) {
  TeamSpec spec = spec_of(nullptr, 2, Mode::threads);
  spec.bindings = {PuSet{PuSet::kEnd - 1}, PuSet{}};  // a CPU that no machine has
  Team team(spec);
  EXPECT_EQ(team.await_idle(clock_ns() + kLong_ns), Team::State::failed);
  EXPECT_NE(team.error().find("rank 0 could not be bound"), std::string::npos) << team.error();
}

}  // namespace
}  // namespace muster::bench
