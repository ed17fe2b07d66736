// SPDX-License-Identifier: BSD-3-Clause
// `muster bench lock`: what it measures, and what it says about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "bench/host.hpp"
#include "bench/lock_report.hpp"
#include "bench/lock_slice.hpp"
#include "harness.hpp"
#include "machine/error.hpp"
#include "topology/topology.hpp"

namespace muster::bench {
namespace {

LockRunOptions options_of(std::vector<std::string> locks, std::vector<unsigned> threads,
                          unsigned rounds) {
  LockRunOptions options;
  options.locks = std::move(locks);
  options.threads = std::move(threads);
  options.patterns = {Pattern::random};
  options.array = 5000;
  options.rounds = rounds;
  return options;
}

LockRunResults run(std::vector<std::string> locks, std::optional<std::uint64_t> operations = {},
                   double seconds = 0.8) {
  LockRunOptions options = options_of(std::move(locks), {1, 2}, 2);
  options.patterns = {Pattern::strided, Pattern::random};
  options.stride = 7;
  options.operations = operations;
  options.seconds = seconds;
  return run_locks(options, [](const Progress&) {});
}

/// Where others want the CPUs, all of a row's threads may be without one for a short slice.
bool had_cpus_in_each_round(const LockRow& row) {
  return row.latency_ns.samples > 0 && std::all_of(row.rounds_ops_s.begin(), row.rounds_ops_s.end(),
                                                   [](double ops_s) { return ops_s > 0; });
}

TEST(LockBench, MeasuresOursPeersAndNoLock) {
  LockRunResults results;
  for (int twice = 0; twice < 5; ++twice) {
    const double seconds = 0.8 * (1 << twice);
    results = run({"auto", "rcl", "rcl-post", "std::mutex", "pthread_mutex", "none"}, {}, seconds);
    if (std::all_of(results.rows.begin(), results.rows.end(), had_cpus_in_each_round)) break;
  }
  ASSERT_EQ(24U, results.rows.size());
  for (const LockRow& row : results.rows) {
    EXPECT_EQ(RowStatus::ok, row.status) << row.lock << ": " << row.reason;
    // A request may take a context switch or two on busy CPUs.
    EXPECT_GT(row.throughput_ops_s.median, row.lock == "none" ? 10'000 : 0) << row.lock;
    EXPECT_GT(row.latency_ns.samples, 0U) << row.lock;
    EXPECT_GT(row.operations, 0U) << row.lock;
    EXPECT_GE(row.fairness, 1) << row.lock;
    EXPECT_EQ(2U, row.rounds_ops_s.size()) << row.lock;
    EXPECT_TRUE(row.lock != "pthread_mutex" || row.to_pthread.ratio == 1.0);
    EXPECT_EQ(cpu_times(Topology::this_machine().pus()).known, row.noise.shares_known) << row.lock;
  }
  EXPECT_EQ(cpu_times(Topology::this_machine().pus()).known, results.noise.shares_known);
  const nlohmann::ordered_json json = to_json(results);
  EXPECT_EQ("lock", json.at("benchmark"));
  ASSERT_EQ(24U, json.at("results").size());
  for (const auto& row : json.at("results")) {
    for (const char* name : {"lock", "threads", "pattern", "fairness", "verdict"}) {
      EXPECT_TRUE(row.contains(name)) << name;
    }
    for (const char* name : {"median", "min", "ci95"}) {
      EXPECT_TRUE(row.at("throughput_ops_s").contains(name)) << name;
    }
    const auto& misses = row.at("cache_misses_percent");
    // A small array may have none.
    EXPECT_TRUE(misses == "n/a" || (misses.is_number() && misses >= 0)) << misses;
  }
}

TEST(LockBench, CountsOperationsWhereTheyAreAskedFor) {
  const LockRunResults results = run({"cas-spin", "rcl"}, 3001);
  for (const LockRow& row : results.rows) EXPECT_EQ(2 * 3001U, row.operations) << row.lock;
}

TEST(LockBench, FairnessIsMostOverFewest) {
  LockRunOptions options = options_of({"ticket"}, {2}, 1);
  const auto fairness_of = [&](std::uint64_t operations) {
    options.operations = operations;
    return run_locks(options, [](const Progress&) {}).rows.at(0).fairness;
  };
  EXPECT_DOUBLE_EQ(1, fairness_of(6));
  EXPECT_DOUBLE_EQ(2, fairness_of(3));
}

/// A busy machine makes some turns longer, none shorter.
TEST(LockBench, EveryLockHasTheSameTimeInEachRound) {
  LockRunOptions options = options_of({"cas-spin", "rcl", "pthread_mutex"}, {2}, 4);
  options.seconds = 1.2;
  std::map<std::string, double> shortest_s;
  EXPECT_TRUE(test::in_a_quiet_moment([&] {
    shortest_s.clear();
    auto last = std::chrono::steady_clock::now();
    run_locks(options, [&](const Progress& progress) {
      const auto now = std::chrono::steady_clock::now();
      const std::chrono::duration<double> took = now - std::exchange(last, now);
      const std::string lock = progress.what.substr(progress.what.rfind(' ') + 1);
      const auto [at, first] = shortest_s.emplace(lock, took.count());
      if (!first) at->second = std::min(at->second, took.count());
    });
    return std::all_of(shortest_s.begin(), shortest_s.end(),
                       [](const auto& lock) { return lock.second <= 0.19; });
  })) << testing::PrintToString(shortest_s);
  ASSERT_EQ(3U, shortest_s.size());
  for (const auto& [lock, seconds] : shortest_s) EXPECT_GE(seconds, 0.1) << lock;
}

// A lock that always followed the same one would always find the machine as that one left it.
TEST(LockBench, TurnsAreInterleavedAndAnotherLockBeginsEachRound) {
  LockRunOptions options = options_of({"ticket", "pthread_mutex", "none"}, {1, 2}, 4);
  options.operations = 100;
  std::vector<std::string> turns;
  run_locks(options, [&](const Progress& progress) {
    if (turns.empty() || turns.back() != progress.what) turns.push_back(progress.what);
  });
  std::vector<std::string> expected;
  for (const unsigned threads : {1, 2}) {
    for (unsigned round = 0; round < 4; ++round) {
      for (unsigned turn = 0; turn < 3; ++turn) {
        expected.push_back(std::string("random, ") + (threads == 1 ? "1 thread" : "2 threads") +
                           ", round " + std::to_string(round + 1) + " of 4, " +
                           options.locks[(turn + round) % 3]);
      }
    }
  }
  EXPECT_EQ(expected, turns);
}

/// Each operation takes a millisecond; from the `Last`th on, it does not end.
template <std::uint64_t Last>
class Dear final : public LockSubject {
 public:
  void run(Slice& slice) override {
    slice.run([this](std::uint32_t*, auto) {
      do {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      } while (done_.load() >= Last);
      ++done_;
    });
  }

 private:
  std::atomic<std::uint64_t> done_{0};
};

constexpr std::int64_t kServers_ns = 50'000'000;

/// Its section is another thread's, as a server's: so much CPU time.
class Served final : public LockSubject {
 public:
  void run(Slice& slice) override {
    slice.run([](std::uint32_t*, auto) {
      std::thread server([] {
        timespec now{};
        do {
          clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        } while (now.tv_sec == 0 && now.tv_nsec < kServers_ns);
      });
      server.join();
    });
  }
};

/// What a team of such locks is made of; all work on one word.
template <class Subject>
LockEntry entry_of() {
  return {"test", LockEntry::ours, "", "", [](const std::string&) -> std::unique_ptr<LockSubject> {
            return std::make_unique<Subject>();
          }};
}
LockSetting setting_of(std::uint64_t operations, unsigned threads) {
  static std::uint32_t word;
  LockSetting setting;
  setting.threads = threads;
  setting.operations = operations;
  setting.array = &word;
  setting.words = 1;
  return setting;
}

TEST(LockBench, CountsAServersTimeAsItsOwn) {
  LockTeam team(entry_of<Served>(), setting_of(2, 1));
  ASSERT_EQ(LockTeam::State::idle, team.await_idle(clock_ns() + 60'000'000'000)) << team.error();
  const std::int64_t before_ns = team.cpu_ns();
  team.start_slice();
  ASSERT_EQ(LockTeam::State::idle, team.await_operations(60'000'000'000, [](std::uint64_t) {}));
  EXPECT_GE(team.cpu_ns() - before_ns, 2 * kServers_ns);
}

struct Waited {
  LockTeam::State state;
  std::uint64_t operations;
  std::uint64_t looks;
};

template <std::uint64_t Last>
Waited wait_for(std::uint64_t operations, std::int64_t stall_ns) {
  LockTeam team(entry_of<Dear<Last>>(), setting_of(operations, 2));
  EXPECT_EQ(LockTeam::State::idle, team.await_idle(clock_ns() + 60'000'000'000)) << team.error();
  team.start_slice();
  std::uint64_t looks = 0;
  std::uint64_t seen = 0;
  const LockTeam::State state = team.await_operations(stall_ns, [&](std::uint64_t done) {
    EXPECT_GT(done, seen);
    seen = done;
    ++looks;
  });
  return {state, team.slice_operations(), looks};
}

TEST(LockBench, OperationsTakeAsLongAsTheyGoOn) {
  const auto begin = std::chrono::steady_clock::now();
  const Waited waited = wait_for<~std::uint64_t{0}>(6001, 2'000'000'000);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_EQ(LockTeam::State::idle, waited.state) << waited.operations << " were done";
  EXPECT_EQ(6001U, waited.operations);
  EXPECT_GE(waited.looks, 2U) << "nobody could tell how far it is";
}

TEST(LockBench, OperationsThatDoNotGoOnAreGivenUp) {
  const Waited waited = wait_for<200>(6001, 1'000'000'000);
  EXPECT_EQ(LockTeam::State::busy, waited.state);
  EXPECT_LT(waited.operations, 6001U);
}

/// A row of this many samples of 64 operations each, the last of which took long.
LockRow row_of(std::size_t samples) {
  std::vector<LatencySample> latencies(samples, {40, 64});
  latencies.back() = {123e6F, 64};
  LockRow row;
  row.lock = "flat-combining";
  row.mean_ops_s = 123.4e6;
  row.mean_ci95 = {98.76e6, 1234.5e6};
  row.throughput_ops_s = {.median = 123.4e6, .min = 1, .ci95 = {98.76e6, 1234.5e6}};
  row.latency_ns = latency_distribution(latencies);
  row.fairness = 23456.7;
  row.cache_misses_percent = 12.345;
  row.to_pthread = {.ratio = 123.456, .ci95 = {1, 2}, .rounds = 3};
  row.noise.noisy = true;
  return row;
}

TEST(LockBench, LatenciesAreADistribution) {
  LockRunResults results;
  results.rows = {row_of(10'000), row_of(100)};
  const nlohmann::ordered_json json = to_json(results);
  const auto& many = json.at("results").at(0).at("latency_ns");
  EXPECT_EQ(many.at("samples"), 10'000);
  for (const char* name : {"min", "p10", "p25", "median", "p75", "p90", "p99", "p99.9"}) {
    EXPECT_EQ(many.at(name), 40) << name;
  }
  EXPECT_EQ(many.at("max"), 123'000'000);
  EXPECT_EQ(many.at("histogram").dump(), R"({"from_ns":[40,117440512],"operations":[639936,64]})");
  const auto& few = json.at("results").at(1).at("latency_ns");
  EXPECT_EQ(few.at("p90"), 40);
  EXPECT_EQ(few.at("p99"), nullptr);
  EXPECT_EQ(few.at("p99.9"), nullptr);
  const std::string csv = to_csv(results);
  EXPECT_THAT(csv,
              testing::HasSubstr(",latency_ns_min,latency_ns_p10,latency_ns_p25,latency_ns_median,"
                                 "latency_ns_p75,latency_ns_p90,latency_ns_p99,latency_ns_p99.9,"
                                 "latency_ns_max,latency_ns_samples,fairness,"));
  EXPECT_THAT(csv, testing::HasSubstr(",40.0,40.0,40.0,40.0,40.0,,,123000000.0,100,"));
  EXPECT_THAT(csv, testing::Not(testing::HasSubstr("histogram")));
}

TEST(LockBench, WhatIsNotCountedIsNotZero) {
  LockRunResults results;
  results.rows = {row_of(100), row_of(100)};
  results.rows[0].cache_misses_percent = std::nan("");
  results.rows[1].cache_misses_percent = 0;
  const nlohmann::ordered_json rows = to_json(results).at("results");
  EXPECT_EQ(rows.at(0).at("cache_misses_percent"), "n/a");
  EXPECT_EQ(rows.at(1).at("cache_misses_percent"), 0);
}

TEST(LockBench, TheTableIsNotWiderThanATerminal) {
  LockRunResults results;
  results.rows = {row_of(10'000), row_of(100), row_of(100)};
  results.rows[2].lock = "pthread_mutex";
  results.rows[2].mean_ops_s = 1e6;
  std::istringstream lines(to_text(results));
  unsigned rows = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
    rows += line.find("flat-combining ") == 1 ? 1 : 0;
  }
  EXPECT_EQ(rows, 2U);
  EXPECT_THAT(to_text(results), testing::HasSubstr("40.0 ns 40.0 ns 40.0 ns "));
  EXPECT_THAT(to_text(results), testing::HasSubstr("40.0 ns       -       - "));
}

TEST(LockBench, SamplesStandForAllOperations) {
  const LockRunResults results = run({"pthread_mutex"}, 400'000);
  for (const LockRow& row : results.rows) {
    double operations = 0;
    for (const auto& bucket : row.latency_ns.histogram) operations += bucket.operations;
    // Each thread's last window of each of both rounds may be incomplete.
    EXPECT_NEAR(operations, 800'000, 4 * 1024) << row.threads;
    EXPECT_GE(row.latency_ns.samples, 2 * LatencySampler::kMax / 2) << row.threads;
  }
}

TEST(LockBench, ARowWithoutFiguresHasTheSameColumns) {
  LockRunResults results;
  results.rows.resize(2);
  results.rows[0].lock = "one";
  results.rows[0].throughput_ops_s = {.median = 200, .min = 100, .ci95 = {150, 250}};
  results.rows[0].to_best = {.ratio = 0.75, .ci95 = {0.5, 0.875}, .rounds = 3};
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
  EXPECT_EQ(3, std::count(csv.begin(), csv.end(), '\n'));
  EXPECT_THAT(csv, testing::HasSubstr("_median,throughput_ops_s_min,throughput_ops_s_ci95_lo,"
                                      "throughput_ops_s_ci95_hi,throughput_ops_s_mean_ci95_lo"));
  EXPECT_THAT(csv, testing::HasSubstr(",200.0,100.0,150.0,250.0,"));
  EXPECT_THAT(csv, testing::HasSubstr(",to_pthread_mutex_ratio,to_pthread_mutex_ci95_lo,"
                                      "to_pthread_mutex_ci95_hi,to_best_ratio,to_best_ci95_lo,"
                                      "to_best_ci95_hi,verdict,"));
  EXPECT_THAT(csv, testing::HasSubstr(",,,,0.75,0.5,0.875,quiet,"));
  EXPECT_THAT(csv, testing::HasSubstr("other,ours,0,sequential,failed,,,,,,"));
  EXPECT_THAT(csv, testing::HasSubstr(",0,,,,,,,,quiet,"));
}

TEST(LockBench, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(run({"no-such-lock"}), Error);
  EXPECT_THROW(parse_pattern("zigzag"), Error);
}

/// What an array of ten words has when one thread has incremented words of it four times.
std::vector<std::uint32_t> incremented(Pattern pattern) {
  const auto& entries = lock_entries();
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [](const LockEntry& one) { return one.name == "ticket"; });
  const SharedBytes memory(10 * sizeof(std::uint32_t));
  LockSetting setting;
  setting.lock = entry->name;
  setting.operations = 4;
  setting.pattern = pattern;
  setting.stride = 3;
  setting.array = reinterpret_cast<std::uint32_t*>(memory.data());
  setting.words = 10;
  LockTeam team(*entry, setting);
  EXPECT_EQ(LockTeam::State::idle, team.await_idle(clock_ns() + 60'000'000'000)) << team.error();
  team.start_slice();
  EXPECT_EQ(LockTeam::State::idle, team.await_operations(60'000'000'000, [](std::uint64_t) {}));
  return {setting.array, setting.array + 10};
}

TEST(LockBench, IncrementsWordsByThePattern) {
  for (const auto& [pattern, step] : {std::pair(Pattern::sequential, 1U), {Pattern::strided, 3U}}) {
    const std::vector<std::uint32_t> words = incremented(pattern);
    unsigned fitting = 0;
    for (unsigned first = 0; first < 10; ++first) {
      std::vector<std::uint32_t> expected(10);
      for (unsigned i = 0; i < 4; ++i) ++expected[(first + i * step) % 10];
      if (words == expected) ++fitting;
    }
    EXPECT_EQ(1U, fitting) << pattern_name(pattern) << ": " << testing::PrintToString(words);
  }
  const std::vector<std::uint32_t> words = incremented(Pattern::random);
  EXPECT_EQ(4U, std::accumulate(words.begin(), words.end(), 0U));
}

TEST(LockBench, ARandomWalkComesEverywhere) {
  Walk random(Pattern::random, 100, 1, 1);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 2000; ++i) seen.insert(random.next());
  EXPECT_EQ(100U, seen.size());
  EXPECT_LT(*seen.rbegin(), 100U);
}

}  // namespace
}  // namespace muster::bench
