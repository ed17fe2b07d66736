// SPDX-License-Identifier: BSD-3-Clause
// Which operations are timed, and what is said about all of them.
#include "bench/latency.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace muster::bench {
namespace {

using Report = LatencySampler::Report;

/// A slice of so many operations; the latency of each is its number.
void run_slice(LatencySampler& sampler, Report& report, std::uint64_t operations) {
  for (std::uint64_t at = sampler.begin(report); at < operations;) {
    at = sampler.record(report, static_cast<std::int64_t>(at));
  }
}

TEST(LatencySampler, OneOfEachWindowAllOverTheSlice) {
  constexpr std::uint64_t kFull = LatencySampler::kMax * LatencySampler::kEveryMin;
  for (const std::uint64_t operations :
       {std::uint64_t{5'000}, kFull - 1, kFull, kFull + 1, std::uint64_t{3'000'000}}) {
    Report report{};
    LatencySampler sampler(1);
    run_slice(sampler, report, operations);
    const std::uint64_t windows = operations / report.every;
    EXPECT_GE(report.count, windows) << operations;
    EXPECT_LE(report.count, windows + 1) << operations;
    EXPECT_LT(report.count, LatencySampler::kMax) << operations;
    if (report.every > LatencySampler::kEveryMin) {
      EXPECT_GE(report.count, LatencySampler::kMax / 2) << operations;
    }
    for (std::uint32_t i = 0; i < report.count; ++i) {
      EXPECT_EQ(i, static_cast<std::uint64_t>(report.ns[i]) / report.every) << operations;
    }
  }
}

// In step with a cache line's words, a sequential walk would have misses in all samples or in none;
// if each second sample were dropped by its number, half of the operations had no chance.
TEST(LatencySampler, EachOperationHasTheSameChance) {
  constexpr unsigned kParts = 32;
  std::vector<unsigned> found(kParts);
  unsigned all = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Report report{};
    LatencySampler sampler(seed);
    run_slice(sampler, report, 4 * LatencySampler::kMax * LatencySampler::kEveryMin);
    for (std::uint32_t i = 0; i < report.count; ++i) {
      const std::uint64_t at = static_cast<std::uint64_t>(report.ns[i]) % report.every;
      ++found[at * kParts / report.every];
      ++all;
    }
  }
  const double expected = static_cast<double>(all) / kParts;  // 640 and more: 8 deviations are 32 %
  for (unsigned part = 0; part < kParts; ++part)
    EXPECT_NEAR(found[part], expected, 0.32 * expected);
}

TEST(LatencySampler, TheNextSliceBeginsWithHalfOfTheWindows) {
  Report report{};
  LatencySampler sampler(1);
  run_slice(sampler, report, 3'000'000);
  const std::uint64_t every = report.every;
  run_slice(sampler, report, 1000);
  EXPECT_EQ(every / 2, report.every);
  for (int slice = 0; slice < 10; ++slice) run_slice(sampler, report, 1000);
  EXPECT_EQ(LatencySampler::kEveryMin, report.every);
}

// So that the usual five rounds of one thread tell the percentile that a thousandth exceeds.
TEST(LatencySampler, FiveSlicesAreEnoughForTheRarestPercentile) {
  LatencySampler sampler(1);
  Report report{};
  run_slice(sampler, report, 1'000'000);
  std::vector<LatencySample> samples;
  for (std::uint64_t slice = 0; slice < 5; ++slice) {
    run_slice(sampler, report, 1'000'000 + 30'000 * slice);  // about where windows grow longer
    for (std::uint32_t i = 0; i < report.count; ++i) {
      samples.push_back({report.ns[i], static_cast<float>(report.every)});
    }
  }
  EXPECT_FALSE(std::isnan(latency_distribution(samples).p999)) << samples.size();
}

TEST(LatencyDistribution, NothingIsNothing) {
  const LatencyDistribution none = latency_distribution({});
  EXPECT_EQ(none.samples, 0U);
  EXPECT_TRUE(std::isnan(none.min) && std::isnan(none.median) && std::isnan(none.max));
  EXPECT_TRUE(none.histogram.empty());
}

TEST(LatencyDistribution, KnownValues) {
  std::vector<LatencySample> samples;
  for (int i = 10'000; i >= 1; --i) samples.push_back({static_cast<float>(i), 64});
  const LatencyDistribution d = latency_distribution(samples);
  EXPECT_EQ(d.samples, 10'000U);
  EXPECT_EQ(d.min, 1);
  EXPECT_EQ(d.p10, 1000);
  EXPECT_EQ(d.p25, 2500);
  EXPECT_EQ(d.median, 5000);
  EXPECT_EQ(d.p75, 7500);
  EXPECT_EQ(d.p90, 9000);
  EXPECT_EQ(d.p99, 9900);
  EXPECT_EQ(d.p999, 9990);
  EXPECT_EQ(d.max, 10'000);
}

// Else who is slow, and has more of its operations timed, would count for more of them than it did.
TEST(LatencyDistribution, ASampleCountsForAsManyAsItStandsFor) {
  std::vector<LatencySample> samples(100, {20, 900});
  samples.insert(samples.end(), 100, {5000, 100});
  const LatencyDistribution d = latency_distribution(samples);
  EXPECT_EQ(d.p90, 20);
  EXPECT_EQ(d.p99, 5000);
  ASSERT_EQ(d.histogram.size(), 2U);
  EXPECT_EQ(d.histogram[0].operations, 90'000);
  EXPECT_EQ(d.histogram[1].operations, 10'000);
}

TEST(LatencyDistribution, WhatFewSamplesTellIsNotClaimed) {
  const auto of = [](std::size_t count) {
    std::vector<LatencySample> samples;
    for (std::size_t i = 0; i < count; ++i) samples.push_back({static_cast<float>(i), 64});
    return latency_distribution(samples);
  };
  EXPECT_TRUE(std::isnan(of(3900).p999));
  EXPECT_EQ(of(4100).p999, 4095);
  EXPECT_TRUE(std::isnan(of(390).p99));
  EXPECT_EQ(of(410).p99, 405);
  EXPECT_TRUE(std::isnan(of(40).p10));
  EXPECT_EQ(of(50).p10, 4);
  const LatencyDistribution one = of(1);
  EXPECT_TRUE(std::isnan(one.p25) && std::isnan(one.p75) && std::isnan(one.p90));
  EXPECT_TRUE(one.min == 0 && one.median == 0 && one.max == 0);
  // One that stands for many is one.
  std::vector<LatencySample> samples(10'000, {20, 64});
  samples.push_back({3e6F, 1 << 20});
  EXPECT_TRUE(std::isnan(latency_distribution(samples).p999));
}

TEST(LatencyDistribution, BucketsBeginAtTheBounds) {
  const auto bound = [](float ns) {
    return latency_distribution({{ns, 1}}).histogram.at(0).from_ns;
  };
  std::vector<std::uint64_t> bounds{0, 1, 2, 3};
  for (std::uint64_t power = 1; power < std::uint64_t{1} << 40; power *= 2) {
    for (const std::uint64_t quarter : {4U, 5U, 6U, 7U}) bounds.push_back(quarter * power);
  }
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    EXPECT_EQ(bounds[i], bound(static_cast<float>(bounds[i])));
    if (bounds[i + 1] < 1 << 24) {  // a float has each whole number up to here
      EXPECT_EQ(bounds[i], bound(static_cast<float>(bounds[i + 1] - 1)));
    }
  }
  const LatencyDistribution two = latency_distribution({{95, 1}, {96, 64}, {111, 128}, {112, 1}});
  ASSERT_EQ(two.histogram.size(), 3U);
  EXPECT_EQ(two.histogram[0].from_ns, 80U);
  EXPECT_EQ(two.histogram[1].from_ns, 96U);
  EXPECT_EQ(two.histogram[1].operations, 192);
  EXPECT_EQ(two.histogram[2].from_ns, 112U);
}

}  // namespace
}  // namespace muster::bench
