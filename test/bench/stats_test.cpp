// SPDX-License-Identifier: BSD-3-Clause
#include "bench/stats.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace muster::bench {
namespace {

using Blocks = std::vector<std::vector<double>>;

TEST(Quantile, IsTypeSeven) {
  const std::vector<double> values{1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);  // R: quantile(1:4, 0.25)
  EXPECT_DOUBLE_EQ(quantile({10, 20, 30}, 0.99), 29.8);
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_DOUBLE_EQ(quantile({10, infinite, infinite}, 0), 10);
  EXPECT_DOUBLE_EQ(quantile({10, infinite, infinite}, 0.9), infinite);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.99), 7);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(Median, NeedsNoOrder) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(Overlap, TouchingIsMeeting) {
  EXPECT_TRUE(overlap({1, 2}, {2, 3}));
  EXPECT_TRUE(overlap({2, 3}, {1, 2}));
  EXPECT_TRUE(overlap({1, 4}, {2, 3}));
  EXPECT_FALSE(overlap({1, 2}, {2.1, 3}));
  EXPECT_FALSE(overlap({2.1, 3}, {1, 2}));
}

TEST(Summarize, NothingIsNothing) {
  EXPECT_EQ(summarize({}, 1).samples, 0U);
  EXPECT_EQ(summarize({{}, {}}, 1).samples, 0U);
}

TEST(Summarize, OneSampleIsAllThereIs) {
  const Summary s = summarize({{5}}, 1);
  EXPECT_EQ(s.samples, 1U);
  EXPECT_EQ(s.median, 5);
  EXPECT_EQ(s.min, 5);
  EXPECT_EQ(s.p99, 5);
  EXPECT_EQ(s.ci95.lo, 5);
  EXPECT_EQ(s.ci95.hi, 5);
}

TEST(Summarize, KnownValues) {
  std::vector<double> hundred;
  for (int i = 1; i <= 100; ++i) hundred.push_back(i);
  const Summary s = summarize({hundred}, 1);
  EXPECT_EQ(s.samples, 100U);
  EXPECT_DOUBLE_EQ(s.median, 50.5);
  EXPECT_EQ(s.min, 1);
  EXPECT_DOUBLE_EQ(s.p99, 99.01);
}

TEST(Summarize, SameSeedSameInterval) {
  Blocks blocks(8);
  std::mt19937_64 random(3);
  for (auto& block : blocks) {
    for (int i = 0; i < 50; ++i) block.push_back(static_cast<double>(random() % 1000));
  }
  const Summary a = summarize(blocks, 42);
  const Summary b = summarize(blocks, 42);
  EXPECT_EQ(a.ci95.lo, b.ci95.lo);
  EXPECT_EQ(a.ci95.hi, b.ci95.hi);
  EXPECT_LE(a.ci95.lo, a.median);
  EXPECT_GE(a.ci95.hi, a.median);
}

// Ten rounds, half of them in a slow phase: however many samples, the median is as uncertain as ten
// coin tosses. Drawing single samples would claim to know it.
TEST(Summarize, SamplesOfOneBlockAreNotNewEvidence) {
  Blocks blocks;
  for (int round = 0; round < 10; ++round) {
    blocks.emplace_back(1000, round % 2 == 0 ? 100.0 : 500.0);
  }
  const Summary s = summarize(blocks, 1);
  EXPECT_EQ(s.ci95.lo, 100);
  EXPECT_EQ(s.ci95.hi, 500);
}

// The interval has to cover the true median about 95 times in 100: 200 trials, at least 170 (were
// it 95 %, fewer had a probability below 1e-6), and not all, or it says nothing.
TEST(Summarize, CoversAsOftenAsItSays) {
  std::mt19937_64 random(7);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  int covered = 0;
  double width = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Blocks blocks(20);
    for (auto& block : blocks) {
      for (int i = 0; i < 30; ++i) block.push_back(uniform());  // its median is 0.5
    }
    const Summary s = summarize(blocks, static_cast<std::uint64_t>(trial));
    covered += s.ci95.lo <= 0.5 && 0.5 <= s.ci95.hi ? 1 : 0;
    width += s.ci95.hi - s.ci95.lo;
  }
  EXPECT_GE(covered, 170);
  EXPECT_LT(covered, 200);
  // Theory: 2 * 1.96 * 0.5 / sqrt(600) = 0.08.
  EXPECT_NEAR(width / 200, 0.08, 0.02);
}

// The machine has a slow phase; b is always 10 % slower. Together the intervals overlap, pairs
// tell.
TEST(PairedRatio, WhatBothSufferCancelsOut) {
  const std::vector<double> a{100, 100, 500, 500, 100, 500};
  const std::vector<double> b{110, 110, 550, 550, 110, 550};
  const PairedRatio ratio = paired_ratio(b, a, 1);
  EXPECT_DOUBLE_EQ(ratio.ratio, 1.1);
  EXPECT_DOUBLE_EQ(ratio.ci95.lo, 1.1);
  EXPECT_DOUBLE_EQ(ratio.ci95.hi, 1.1);
  EXPECT_EQ(ratio.rounds, 6U);
}

TEST(PairedDifference, WhatBothSufferCancelsOut) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const PairedDifference more = paired_difference({12, 22, none, 33, 1}, {10, 20, 30, 30, none}, 1);
  EXPECT_EQ(more.difference, 2);
  EXPECT_EQ(more.ci95.lo, 2);
  EXPECT_EQ(more.ci95.hi, 3);
  EXPECT_EQ(more.rounds, 3U);
  EXPECT_EQ(paired_difference({none}, {1}, 1).rounds, 0U);
}

TEST(PairedRatio, RoundsThatOneMissedArePassedOver) {
  const double none = std::nan("");
  const PairedRatio ratio = paired_ratio({none, 4, 9}, {1, 2, none, 7}, 1);
  EXPECT_EQ(ratio.rounds, 1U);
  EXPECT_DOUBLE_EQ(ratio.ratio, 2);
  EXPECT_EQ(paired_ratio({none}, {1}, 1).rounds, 0U);
  EXPECT_EQ(paired_ratio({}, {}, 1).rounds, 0U);
}

}  // namespace
}  // namespace muster::bench
