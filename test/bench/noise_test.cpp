// SPDX-License-Identifier: BSD-3-Clause
// When a measurement is called noisy: the verdict on given counters.
#include "bench/noise.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/report.hpp"

namespace muster::bench {
namespace {

using testing::HasSubstr;

constexpr unsigned cpus = 2;
constexpr std::int64_t ms = 1'000'000;

/// A second of two participants that have the two CPUs to themselves.
Activity quiet_second() {
  Activity activity;
  activity.wall_ns = 1000 * ms;
  activity.participant_ns = 2000 * ms;
  activity.busy_ns = 1900 * ms;
  activity.team_cpu_ns = 1850 * ms;
  activity.involuntary = 20;
  return activity;
}

TEST(Judge, WhoHasTheCpusToHimselfIsQuiet) {
  const Noise noise = judge(quiet_second(), cpus);
  EXPECT_FALSE(noise.noisy);
  EXPECT_STREQ(verdict(noise), "quiet");
  EXPECT_EQ(noise.why, "");
  EXPECT_TRUE(noise.shares_known);
  EXPECT_DOUBLE_EQ(noise.involuntary_per_s, 10);
  EXPECT_DOUBLE_EQ(noise.steal_share, 0);
  EXPECT_DOUBLE_EQ(noise.others_share, 0.025);
}

TEST(Judge, InvoluntarySwitches) {
  Activity activity = quiet_second();
  activity.involuntary = 100;  // 50 a participant and second: as many as are borne
  EXPECT_FALSE(judge(activity, cpus).noisy);
  activity.involuntary = 240;
  const Noise noise = judge(activity, cpus);
  EXPECT_TRUE(noise.noisy);
  EXPECT_STREQ(verdict(noise), "noisy");
  EXPECT_DOUBLE_EQ(noise.involuntary_per_s, 120);
  EXPECT_THAT(noise.why, HasSubstr("120 involuntary switches"));
  // A few prove nothing, however short the time.
  activity.participant_ns = 10 * ms;
  activity.involuntary = 4;
  EXPECT_FALSE(judge(activity, cpus).noisy);
  activity.involuntary = 5;
  EXPECT_TRUE(judge(activity, cpus).noisy);
}

TEST(Judge, SwitchesThatNobodyElseGainsByAreYields) {
  Activity activity = quiet_second();
  activity.involuntary = 100'000;
  activity.busy_ns = activity.team_cpu_ns + 40 * ms;  // 2 % of two CPUs
  EXPECT_FALSE(judge(activity, cpus).noisy);
  EXPECT_DOUBLE_EQ(judge(activity, cpus).involuntary_per_s, 50'000);
  activity.steal_ns = 41 * ms;
  EXPECT_THAT(judge(activity, cpus).why, HasSubstr("50000 involuntary switches"));
  activity.steal_ns = 0;
  activity.busy_ns += ms;
  EXPECT_THAT(judge(activity, cpus).why, HasSubstr("50000 involuntary switches"));
  activity.known = false;
  EXPECT_TRUE(judge(activity, cpus).noisy) << "somebody may have had them";
}

TEST(Judge, SwitchesAreTheRuleWhereParticipantsShareCpus) {
  Activity sum = quiet_second();
  Activity shared = quiet_second();
  shared.involuntary = 100'000;
  shared.oversubscribed = true;
  sum.add(shared);
  EXPECT_EQ(sum.wall_ns, 2000 * ms);
  EXPECT_EQ(sum.busy_ns, 3800 * ms);
  EXPECT_EQ(sum.team_cpu_ns, 3700 * ms);
  EXPECT_EQ(sum.involuntary, 20U);
  EXPECT_FALSE(judge(sum, cpus).noisy);
  shared.oversubscribed = false;
  sum.add(shared);
  EXPECT_TRUE(judge(sum, cpus).noisy);
}

TEST(Judge, WhatTheHypervisorTakes) {
  Activity activity = quiet_second();
  activity.steal_ns = 40 * ms;  // 2 %
  EXPECT_FALSE(judge(activity, cpus).noisy);
  activity.steal_ns = 120 * ms;
  const Noise noise = judge(activity, cpus);
  EXPECT_TRUE(noise.noisy);
  EXPECT_DOUBLE_EQ(noise.steal_share, 0.06);
  EXPECT_THAT(noise.why, HasSubstr("6 % of the CPUs' time stolen"));
  // On more CPUs it is less, and a tick or two of 10 ms prove nothing.
  EXPECT_FALSE(judge(activity, 8).noisy);
  activity.wall_ns = 100 * ms;
  activity.busy_ns = activity.team_cpu_ns;
  activity.steal_ns = 20 * ms;
  EXPECT_FALSE(judge(activity, cpus).noisy);
}

TEST(Judge, WhatOtherProgramsTake) {
  Activity activity = quiet_second();
  activity.team_cpu_ns = 1700 * ms;  // of 1900: 10 % of two CPUs
  EXPECT_FALSE(judge(activity, cpus).noisy);
  activity.team_cpu_ns = 1500 * ms;
  const Noise noise = judge(activity, cpus);
  EXPECT_TRUE(noise.noisy);
  EXPECT_DOUBLE_EQ(noise.others_share, 0.2);
  EXPECT_THAT(noise.why, HasSubstr("20 % of the CPUs' time spent by other programs"));
  activity.team_cpu_ns = 2000 * ms;  // ticks are coarse: nobody takes less than nothing
  EXPECT_DOUBLE_EQ(judge(activity, cpus).others_share, 0);
}

TEST(Judge, AllReasonsAreGiven) {
  Activity activity = quiet_second();
  activity.involuntary = 1000;
  activity.steal_ns = 200 * ms;
  activity.team_cpu_ns = 100 * ms;
  EXPECT_THAT(judge(activity, cpus).why,
              testing::MatchesRegex("500 involuntary.*; 10 %.*stolen.*; 90 %.*other programs"));
}

TEST(Judge, WhatIsNotKnownIsNotJudged) {
  Activity activity = quiet_second();
  Activity unknown = quiet_second();
  unknown.known = false;
  unknown.steal_ns = 1000 * ms;
  activity.add(unknown);
  const Noise noise = judge(activity, cpus);
  EXPECT_FALSE(noise.noisy);
  EXPECT_FALSE(noise.shares_known);
  EXPECT_FALSE(judge({}, cpus).noisy) << "nothing happened";
}

}  // namespace
}  // namespace muster::bench
