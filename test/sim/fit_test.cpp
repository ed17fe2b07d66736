// SPDX-License-Identifier: BSD-3-Clause
// Fitting machines to measurements that the model itself made with other values, and to the ones
// that the Kunpeng's were fitted to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "machine/error.hpp"
#include "sim/fit.hpp"

namespace muster::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The Kunpeng with other values, and without samples.
MachineModel kunpeng(const Sample& changes) {
  MachineModel machine = load_machine("kunpeng920-2s");
  machine.samples.clear();
  for (const auto& [key, value] : changes) machine.set(key, value, "assumed: a test");
  return machine;
}

constexpr Effort small{4, 10, 0, 1};

std::vector<Measurement> measured_on(const MachineModel& machine,
                                     const std::vector<std::string>& algorithms) {
  StackPool pool;
  std::vector<Measurement> all;
  for (const std::string& algorithm : algorithms) {
    const Query query{algorithm, 16, Mapping::core};
    all.push_back({query, latency_us_of(machine, query, small, 1, pool)});
  }
  return all;
}

FitOptions free_to(std::vector<std::string> free) {
  FitOptions options;
  options.free = std::move(free);
  options.effort = small;
  options.evaluations = 60;
  options.starts = 1;
  options.samples = 0;
  return options;
}

TEST(Fit, FindsWhatSharesFlagsAndThenTheCostOfAMessage) {
  const MachineModel truth = kunpeng({{"agent-occupancy", 12}, {"message", 320}});
  // Mixed: each result has to come back to its measurement.
  const std::vector<Measurement> m = measured_on(
      truth, {"base-tree", "mcs", "base-bruck", "tournament", "dissemination", "base-linear"});
  const FitResult result = fit(kunpeng({}), m, free_to({"agent-occupancy"}));
  EXPECT_NEAR(result.machine.value("agent-occupancy"), 12, 0.02 * 12);
  EXPECT_NEAR(result.machine.value("message"), 320, 0.02 * 320);
  EXPECT_THAT(result.fitted, ElementsAre("agent-occupancy", "message"));
  ASSERT_EQ(result.modelled_us.size(), m.size());
  for (std::size_t n = 0; n < m.size(); ++n) {
    EXPECT_NEAR(result.modelled_us[n], m[n].latency_us, 0.02 * m[n].latency_us)
        << m[n].query.algorithm;
  }
  EXPECT_LT(result.median_error, 0.01);
  EXPECT_LT(result.rms, 0.02);
  EXPECT_THAT(result.machine.provenance.at("message"),
              HasSubstr("fitted: to 3 measured latencies, with 0 others"));
  EXPECT_THAT(result.machine.provenance.at("agent-occupancy"), HasSubstr("to 3 measured"));
  EXPECT_EQ(result.machine.value("poll-turn"), truth.value("poll-turn"));  // was not free
}

TEST(Fit, MessagesDoNotMoveWhatSharesFlags) {
  const MachineModel truth = kunpeng({{"agent-occupancy", 12}, {"message", 320}});
  const std::vector<std::string> shared = {"mcs", "tournament", "dissemination"};
  std::vector<std::string> all = shared;
  all.insert(all.end(), {"base-tree", "base-bruck"});
  const auto agent_after = [&](const std::vector<std::string>& names) {
    return fit(kunpeng({}), measured_on(truth, names), free_to({"agent-occupancy"}))
        .machine.value("agent-occupancy");
  };
  EXPECT_EQ(agent_after(shared), agent_after(all));
}

TEST(Fit, TakesAllTogetherIfTheCostOfAMessageIsFree) {
  const MachineModel truth = kunpeng({{"message", 320}});
  const std::vector<Measurement> m = measured_on(truth, {"mcs", "base-tree", "base-bruck"});
  const FitResult result = fit(kunpeng({}), m, free_to({"message"}));
  EXPECT_THAT(result.fitted, ElementsAre("message"));
  EXPECT_NEAR(result.machine.value("message"), 320, 0.02 * 320);
  EXPECT_THAT(result.machine.provenance.at("message"), HasSubstr("to 3 measured"));
}

TEST(Fit, SaysHowFarOffItMayBe) {
  // One parameter, and no value of it explains the second: the best is between both.
  const MachineModel truth = kunpeng({});
  std::vector<Measurement> m = measured_on(truth, {"tournament", "tournament", "tournament"});
  m[1].latency_us *= 1.2;
  const FitResult result = fit(truth, m, free_to({"call"}));
  // In logarithms the least squares are the mean of 0, log 1.2 and 0: what is left is known.
  const double log_off = std::log(1.2);
  const double rms = std::sqrt((2 * std::pow(log_off / 3, 2) + std::pow(2 * log_off / 3, 2)) / 3);
  EXPECT_NEAR(result.rms, rms, 0.002);
  EXPECT_NEAR(result.machine.error, 1.28 * rms * std::sqrt(3.0 / 2), 0.004);
}

TEST(Fit, SamplesAreFittedAgainWithOtherValuesForWhatIsNotKnown) {
  MachineModel machine = kunpeng({});
  machine.uncertainty = {{"latency-NUMA", 0.2}, {"call", 0.5}, {"poll-turn", 0.5}};
  const std::vector<Measurement> m =
      measured_on(machine, {"mcs", "tournament", "dissemination", "combining-tree"});
  FitOptions options = free_to({"poll-turn"});
  options.samples = 4;
  options.sample_evaluations = 30;
  const FitResult result = fit(machine, m, options);
  ASSERT_GE(result.machine.samples.size(), 2U);
  for (const Sample& sample : result.machine.samples) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : sample) keys.push_back(key);
    EXPECT_THAT(keys, ElementsAre("call", "latency-NUMA", "poll-turn"));  // drawn, then fitted
    EXPECT_GE(sample[0].second, machine.value("call") / 1.5);
    EXPECT_LE(sample[0].second, machine.value("call") * 1.5);
    EXPECT_GE(sample[1].second, machine.value("latency-NUMA") / 1.2);
    EXPECT_LE(sample[1].second, machine.value("latency-NUMA") * 1.2);
    // It explains the measurements nearly as well.
    MachineModel member = machine;
    for (const auto& [key, value] : sample) member.set(key, value, "");
    StackPool pool;
    double least = 1;  // each is fitted with a seed of its own
    for (unsigned n = 0; n < options.samples; ++n) {
      std::vector<double> us;
      for (const Measurement& each : m) {
        us.push_back(latency_us_of(member, each.query, small, options.seed + 1 + n, pool));
      }
      least = std::min(least, rms_of(us, m));
    }
    EXPECT_LE(least, 1.5 * result.rms + 0.0201);
  }
  EXPECT_NE(result.machine.samples[0], result.machine.samples[1]);
  // What was fitted is not uncertain by a margin any more; the rest is.
  EXPECT_EQ(result.machine.uncertainty.count("poll-turn"), 0U);
  EXPECT_EQ(result.machine.uncertainty.count("call"), 1U);
  // Deterministic, and what is written reads back.
  EXPECT_EQ(fit(machine, m, options).machine.samples, result.machine.samples);
  const std::string text = format_machine(result.machine);
  EXPECT_EQ(format_machine(parse_machine(text, "f", "")), text);
}

TEST(Fit, MistakesSayWhatToDo) {
  const MachineModel machine = kunpeng({});
  const std::vector<Measurement> m = measured_on(machine, {"mcs", "tournament"});
  const auto error_of = [&](std::vector<std::string> free) -> std::string {
    try {
      fit(machine, m, free_to(std::move(free)));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of({}), HasSubstr("no free parameters"));
  EXPECT_THAT(error_of({"call", "poll-turn"}), HasSubstr("2 measurements cannot tell 2"));
  EXPECT_THAT(error_of({"call", "call"}), HasSubstr("call cannot be fitted twice"));
  EXPECT_THAT(error_of({"coll"}), HasSubstr("poll-turn"));
  EXPECT_THAT(error_of({"latency-L2"}), HasSubstr("latency-L2"));
}

// doc/model.md: `muster sim fit` finds the values of the shipped file again.
TEST(Fit, FindsTheKunpengsValuesAgain) {
  const MachineModel shipped = load_machine("kunpeng920-2s");
  FitOptions options;
  options.samples = 0;
  const std::string folder = std::string(MUSTER_SOURCE_DIR) + "/doc/results/kunpeng-";
  options.evaluations = 40;  // a part of the default, for this test to be quick
  const FitResult result =
      fit(shipped, load_measurements({folder + "64-measured.csv", folder + "128-measured.csv"}),
          options);
  EXPECT_THAT(result.fitted,
              ElementsAre("poll-turn", "read-occupancy", "agent-occupancy", "set-fill", "message"));
  for (const std::string& key : result.fitted) {
    EXPECT_NEAR(result.machine.value(key), shipped.value(key), 0.01 * shipped.value(key)) << key;
  }
  EXPECT_NEAR(result.machine.error, shipped.error, 0.005);
  EXPECT_NEAR(result.machine.message_error, shipped.message_error, 0.005);
}

}  // namespace
}  // namespace muster::sim
