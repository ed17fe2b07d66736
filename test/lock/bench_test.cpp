// SPDX-License-Identifier: BSD-3-Clause
// `muster bench lock`: what it measures, and what it says about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/lock_report.hpp"
#include "machine/error.hpp"

namespace muster::bench {
namespace {

LockRunResults run(std::vector<std::string> locks, std::uint64_t operations = 0,
                   double seconds = 0.8) {
  LockRunOptions options;
  options.locks = std::move(locks);
  options.threads = {1, 2};
  options.patterns = {Pattern::strided, Pattern::random};
  options.array = 5000;
  options.stride = 7;
  options.operations = operations;
  options.seconds = seconds;
  options.rounds = 2;
  return run_locks(options, [](const Progress&) {});
}

/// Where others want the CPUs, all of a row's threads may be without one for a short slice.
bool had_cpus_in_each_round(const LockRow& row) {
  return row.latency_ns.samples > 0 && std::all_of(row.rounds_ops_s.begin(), row.rounds_ops_s.end(),
                                                   [](double ops_s) { return ops_s > 0; });
}

TEST(LockBench, MeasuresOursPeersAndNoLock) {
  LockRunResults results;
  for (double seconds = 0.8; seconds < 20; seconds *= 2) {
    results = run({"auto", "rcl", "rcl-post", "pthread_mutex", "none"}, 0, seconds);
    if (std::all_of(results.rows.begin(), results.rows.end(), had_cpus_in_each_round)) break;
  }
  ASSERT_EQ(20U, results.rows.size());
  for (const LockRow& row : results.rows) {
    EXPECT_EQ(RowStatus::ok, row.status) << row.lock << ": " << row.reason;
    // A request may take a context switch or two on busy CPUs.
    EXPECT_GT(row.throughput_ops_s.median, row.lock == "none" ? 10'000 : 0) << row.lock;
    EXPECT_GT(row.latency_ns.samples, 0U) << row.lock;
    EXPECT_GT(row.operations, 0U) << row.lock;
    EXPECT_GE(row.fairness, 1) << row.lock;
    EXPECT_EQ(2U, row.rounds_ops_s.size()) << row.lock;
    EXPECT_TRUE(row.lock != "pthread_mutex" || row.to_pthread.ratio == 1.0);
  }
}

TEST(LockBench, CountsOperationsWhereTheyAreAskedFor) {
  const LockRunResults results = run({"cas-spin", "rcl"}, 3001);
  for (const LockRow& row : results.rows) EXPECT_EQ(2 * 3001U, row.operations) << row.lock;
}

TEST(LockBench, RowsHaveWhatIsPromised) {
  const LockRunResults results = run({"mcs", "std::mutex"});
  const nlohmann::ordered_json json = to_json(results);
  EXPECT_EQ("lock", json.at("benchmark"));
  ASSERT_EQ(8U, json.at("results").size());
  for (const auto& row : json.at("results")) {
    for (const char* name : {"lock", "threads", "pattern", "fairness", "verdict"}) {
      EXPECT_TRUE(row.contains(name)) << name;
    }
    for (const char* name : {"median", "min", "ci95"}) {
      EXPECT_TRUE(row.at("throughput_ops_s").contains(name)) << name;
    }
    EXPECT_TRUE(row.at("latency_ns").contains("median"));
    const auto& misses = row.at("cache_misses_percent");
    EXPECT_TRUE(misses == "n/a" || misses.is_number());
    EXPECT_NE(misses, 0) << "what is not counted is not zero";
  }
  const std::string csv = to_csv(results);
  EXPECT_EQ(9, std::count(csv.begin(), csv.end(), '\n'));
  EXPECT_THAT(csv, testing::HasSubstr("throughput_ops_s_median"));
  EXPECT_THAT(to_text(results), testing::HasSubstr("std::mutex"));
}

TEST(LockBench, ARowWithoutFiguresHasTheSameColumns) {
  LockRunResults results;
  results.rows.resize(2);
  results.rows[0].lock = "one";
  results.rows[0].throughput_ops_s = {.median = 200, .min = 100, .ci95 = {150, 250}};
  results.rows[1].lock = "other";
  results.rows[1].status = RowStatus::failed;
  const std::string csv = to_csv(results);
  auto commas_of_line = [&, at = std::size_t{0}]() mutable {
    const std::size_t begin = std::exchange(at, csv.find('\n', at) + 1);
    return std::count(csv.data() + begin, csv.data() + at, ',');
  };
  const auto columns = commas_of_line();
  EXPECT_EQ(columns, commas_of_line());
  EXPECT_EQ(columns, commas_of_line());
  EXPECT_THAT(csv, testing::HasSubstr("_median,throughput_ops_s_min,throughput_ops_s_ci95_lo,"
                                      "throughput_ops_s_ci95_hi,latency"));
  EXPECT_THAT(csv, testing::HasSubstr(",200.0,100.0,150.0,250.0,"));
  EXPECT_THAT(csv, testing::HasSubstr("other,ours,0,sequential,failed,,,,,,"));
}

TEST(LockBench, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(run({"no-such-lock"}), Error);
  EXPECT_THROW(parse_pattern("zigzag"), Error);
}

TEST(LockBench, WalksAsItSays) {
  Walk strided(Pattern::strided, 10, 7, 1);
  const std::uint64_t first = strided.next();
  EXPECT_EQ((first + 7) % 10, strided.next());
  Walk random(Pattern::random, 100, 1, 1);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 2000; ++i) seen.insert(random.next());
  EXPECT_EQ(100U, seen.size());
  EXPECT_LT(*seen.rbegin(), 100U);
}

}  // namespace
}  // namespace muster::bench
