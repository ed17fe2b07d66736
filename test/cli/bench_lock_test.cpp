// SPDX-License-Identifier: BSD-3-Clause
// `muster bench lock`: what it prints and writes, what it measures of what was asked for, and that
// mistakes are told before anything is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>

#include "bench/lock_slice.hpp"
#include "bench/lock_team.hpp"
#include "program.hpp"
#include "test/bench/csv.hpp"

namespace {

using muster::bench::LockEntry;
using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Words = std::vector<std::string>;
using namespace std::chrono_literals;

Words bench(const Words& more) {
  Words words{"bench", "lock", "--array", "5000"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

json run_json(const Words& words) { return json::parse(run_muster_for_json(bench(words))); }

/// Whether each of its threads had a CPU, in each round.
bool is_whole(const json& row) {
  return row.at("status") == "ok" && row.at("fairness").is_number() &&
         row.at("latency_ns").at("samples") > 0 && row.at("throughput_ops_s").at("min") > 0;
}

/// Runs it longer and longer until all rows are whole: others may want the CPUs.
json run_json_until_whole(const Words& words) {
  json results;
  for (int twice = 0; twice < 6; ++twice) {
    const double seconds = 0.5 * (1 << twice);
    Words timed = words;
    timed.insert(timed.end(), {"--seconds", std::to_string(seconds)});
    results = run_json(timed);
    const json& rows = results.at("results");
    if (std::all_of(rows.begin(), rows.end(), is_whole)) break;
  }
  return results;
}

/// Whether this machine counts cache misses for programs at all.
bool misses_can_be_counted() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = PERF_COUNT_HW_CACHE_MISSES;
  attributes.exclude_kernel = 1;
  const auto counter = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
  if (counter >= 0) close(counter);
  return counter >= 0;
}

void expect_row(const json& row) {
  for (const char* name : {"lock", "kind", "pattern", "status", "reason", "verdict"}) {
    EXPECT_TRUE(row.at(name).is_string()) << name << " of " << row;
  }
  EXPECT_TRUE(row.at("threads").is_number_unsigned()) << row;
  const json& misses = row.at("cache_misses_percent");
  EXPECT_TRUE(misses == "n/a" || (misses.is_number() && misses_can_be_counted())) << row;
  EXPECT_EQ(row.at("status"), "ok") << row;
  const json& throughput = row.at("throughput_ops_s");
  const double median = throughput.at("median");
  EXPECT_GT(throughput.at("min"), 0) << row;
  EXPECT_GE(throughput.at("mean"), throughput.at("min")) << row;
  EXPECT_GE(row.at("cpu_ns_per_operation"), 0) << row;
  EXPECT_LE(throughput.at("min"), median) << row;
  ASSERT_EQ(throughput.at("ci95").size(), 2U) << row;
  EXPECT_LE(throughput.at("ci95").at(0), median) << row;
  EXPECT_GE(throughput.at("ci95").at(1), median) << row;
  const json& latency = row.at("latency_ns");
  EXPECT_GT(latency.at("median"), 0) << row;
  ASSERT_GT(latency.at("samples"), 0) << row;
  json last = latency.at("min");
  for (const char* name : {"p10", "p25", "median", "p75", "p90", "p99", "p99.9", "max"}) {
    if (latency.at(name).is_null()) continue;  // of too few samples
    EXPECT_LE(last, latency.at(name)) << name << " of " << row;
    last = latency.at(name);
  }
  const json& bounds = latency.at("histogram").at("from_ns");
  EXPECT_TRUE(std::is_sorted(bounds.begin(), bounds.end())) << row;
  EXPECT_EQ(bounds.size(), latency.at("histogram").at("operations").size()) << row;
  EXPECT_LE(bounds.front(), latency.at("min")) << row;
  EXPECT_LE(bounds.back(), latency.at("max")) << row;
  EXPECT_GE(row.at("fairness"), 1) << row;
  EXPECT_GT(row.at("operations"), 0) << row;
}

TEST(BenchLock, JsonHasARowForEach) {
  const json results = run_json_until_whole(
      {"--locks", "auto,rcl,pthread_mutex", "--threads", "1,2", "--pattern", "sequential,random"});
  EXPECT_EQ(results.at("benchmark"), "lock");
  EXPECT_EQ(results.at("array"), 5000);
  EXPECT_EQ(results.at("operations"), nullptr) << "by time";
  EXPECT_TRUE(results.at("machine").at("model").is_string());
  EXPECT_TRUE(results.at("verdict") == "quiet" || results.at("verdict") == "noisy");
  using Row = std::tuple<std::string, unsigned, std::string>;
  std::set<Row> found;
  for (const json& row : results.at("results")) {
    expect_row(row);
    found.emplace(row.at("lock"), row.at("threads"), row.at("pattern"));
    if (row.at("threads") == 1) {
      EXPECT_EQ(row.at("fairness"), 1);
    }
  }
  std::set<Row> expected;
  for (const char* lock : {"auto", "rcl", "pthread_mutex"}) {
    for (const unsigned threads : {1U, 2U}) {
      for (const char* pattern : {"sequential", "random"}) expected.emplace(lock, threads, pattern);
    }
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(results.at("results").size(), expected.size()) << "one row twice";
}

TEST(BenchLock, TheTableHasALineForEach) {
  const Outcome outcome = run_muster(bench(
      {"--locks", "mcs,std::mutex", "--threads", "1,2", "--pattern", "random", "--seconds", "1"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("array of 5000 words"));
  std::istringstream lines(outcome.out);
  std::map<std::string, unsigned> counts;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(' ') || line.starts_with('!')) line.erase(0, 1);  // "!": was disturbed
    const std::string first = line.substr(0, line.find(' '));
    ++counts[first];
    if (first == "lock") {
      EXPECT_THAT(line, HasSubstr(" M/s "));
    }
  }
  for (const char* once : {"1", "2"}) EXPECT_EQ(counts[once], 1U) << once << " threads";
  for (const char* twice : {"lock", "mcs", "std::mutex"}) EXPECT_EQ(counts[twice], 2U) << twice;
}

TEST(BenchLock, OperationsAreThoseAskedFor) {
  const json results =
      run_json({"--operations", "3001", "--rounds", "3", "--threads", "2,1,2", "--locks",
                "auto,rcl-post,ticket,auto", "--pattern", "sequential,sequential"});
  EXPECT_EQ(results.at("operations"), 3001);
  EXPECT_EQ(results.at("results").size(), 6U) << "what is said twice is measured once";
  for (const json& row : results.at("results")) EXPECT_EQ(row.at("operations"), 3 * 3001) << row;
}

TEST(BenchLock, StridesAreToldWithTheRows) {
  const json results =
      run_json_until_whole({"--pattern", "strided", "--stride", "7", "--threads", "2", "--locks",
                            "cc-synch", "--map-by", "none", "--seed", "5"});
  EXPECT_EQ(results.at("stride"), 7);
  EXPECT_EQ(results.at("seed"), 5);
  EXPECT_EQ(results.at("map_by"), "none");
  ASSERT_EQ(results.at("results").size(), 1U);
  expect_row(results.at("results").at(0));
  EXPECT_EQ(results.at("results").at(0).at("pattern"), "strided");
}

TEST(BenchLock, LocksAreThoseAskedFor) {
  const auto run = [](const std::string& locks, const std::string& readers = "0") {
    const json results =
        run_json({"--locks", locks, "--operations", "50", "--rounds", "1", "--threads", "1",
                  "--pattern", "sequential", "--readers", readers});
    std::set<std::string> names;
    for (const json& row : results.at("results")) {
      names.insert(row.at("lock"));
      EXPECT_EQ(row.at("status"), "ok") << row;
      EXPECT_EQ(row.at("operations"), 50) << row;
    }
    std::set<std::string> left_out;
    for (const json& item : results.at("left_out")) {
      left_out.insert(item.at("implementation"));
      EXPECT_THAT(item.at("reason"), HasSubstr("install "));
    }
    return std::pair(names, left_out);
  };
  const auto expected = [](auto wanted) {
    std::pair<std::set<std::string>, std::set<std::string>> names;
    for (const LockEntry& entry : muster::bench::lock_entries()) {
      if (!wanted(entry)) continue;
      (entry.package.empty() ? names.first : names.second).insert(entry.name);
    }
    return names;
  };
  const auto ours = expected([](const LockEntry& entry) { return entry.kind == LockEntry::ours; });
  const auto peers = expected(
      [](const LockEntry& entry) { return entry.kind == LockEntry::peer && !entry.for_readers; });
  const auto with_readers =
      expected([](const LockEntry& entry) { return entry.kind == LockEntry::peer; });
  EXPECT_EQ(
      ours.first.count("auto") + ours.first.count("pthread-mutex") + ours.first.count("rcl-post"),
      3U);
  std::set<std::string> either = peers.second;  // if ConcurrencyKit is not there
  either.insert(peers.first.begin(), peers.first.end());
  EXPECT_EQ(either, (std::set<std::string>{"ck-clh", "ck-cohort", "ck-fas", "ck-mcs", "ck-ticket",
                                           "pthread_mutex", "std::mutex"}));
  EXPECT_EQ(run("ours"), ours);
  EXPECT_EQ(run("peers"), peers);
  EXPECT_EQ(run("peers", "90"), with_readers);
  EXPECT_EQ(with_readers.first.count("pthread_rwlock") + with_readers.first.count("shared_mutex"),
            2U);
  EXPECT_EQ(run("all"), expected([](const LockEntry& entry) { return !entry.for_readers; }));
  EXPECT_EQ(run("shared_mutex").first, std::set<std::string>{"shared_mutex"});
  EXPECT_EQ(run("clh,std::mutex").first, (std::set<std::string>{"clh", "std::mutex"}));
}

/// Of 1,000 sections on one word, with any lock, how many increment it.
unsigned increments(const LockEntry& entry, double readers) {
  std::uint32_t word = 0;
  muster::bench::LockSetting setting;
  setting.lock = entry.name;
  setting.operations = 1000;
  setting.readers = readers;
  setting.array = &word;
  setting.words = 1;
  const auto shared = std::make_unique<std::array<muster::bench::LockShared, 4>>();
  muster::bench::Slice slice(shared->front(), 0, setting);  // its report is behind it
  const auto subject = entry.make(entry.name);
  subject->run(slice);
  subject->settle();
  return word;
}

TEST(BenchLock, SoManySectionsOnlyReadUnderEachLock) {
  std::set<unsigned> halves;
  for (const LockEntry& entry : muster::bench::lock_entries()) {
    if (entry.kind == LockEntry::reference || !entry.package.empty()) continue;
    if (halves.empty()) {
      EXPECT_EQ(increments(entry, 0), 1000U) << entry.name;
      EXPECT_EQ(increments(entry, 1), 0U) << entry.name;
    }
    halves.insert(increments(entry, 0.5));
  }
  ASSERT_EQ(halves.size(), 1U) << "they are drawn alike for all";
  EXPECT_NEAR(*halves.begin(), 500, 80);  // five standard deviations
}

TEST(BenchLock, OutputIsWrittenAndDrawn) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("muster-locks-" + std::to_string(getpid())) / "new";
  const Outcome outcome =
      run_muster(bench({"--seconds", "1", "--threads", "1,2", "--locks", "auto,pthread_mutex",
                        "--pattern", "random", "--csv", "--output", directory}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Written: "));
  if (expect_written(directory, outcome, {"lock.json", "lock.csv"}, {"lock"})) {
    std::ifstream picture(directory / "lock.svg");
    const std::string svg(std::istreambuf_iterator<char>(picture), {});
    for (const char* text : {"increments, millions a second", "share of increments that take",
                             "latency of an increment", "random, 2 threads"}) {
      EXPECT_THAT(svg, HasSubstr(text));
    }
    expect_drawn_without_bounds(directory, "lock", "throughput_ops_s");
  }
  std::ifstream json_file(directory / "lock.json");
  const json results = json::parse(json_file);
  std::ifstream csv_file(directory / "lock.csv");
  std::stringstream csv;
  csv << csv_file.rdbuf();
  EXPECT_EQ(csv.str(), outcome.out) << "printed and written are the same";
  const auto table = muster::test::read_csv(csv);
  ASSERT_EQ(table.size(), 4U);
  ASSERT_EQ(results.at("results").size(), table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    const json& row = results.at("results").at(i);
    const auto same = [&](const std::string& name, const std::string& pointer) {
      const json::json_pointer at(pointer);
      const json value = row.contains(at) ? row.at(at) : json();  // a busy machine may measure none
      const std::string expected = value.is_string() ? value.get<std::string>()
                                   : value.is_null() ? ""
                                                     : value.dump();
      ASSERT_EQ(table[i].count(name), 1U) << name;
      EXPECT_EQ(table[i].at(name), expected) << name;
    };
    for (const std::string name : {"lock", "kind", "threads", "pattern", "status", "reason",
                                   "fairness", "cache_misses_percent", "operations", "verdict"}) {
      same(name, "/" + name);
    }
    same("throughput_ops_s_mean_ci95_hi", "/throughput_ops_s/mean_ci95/1");
    for (const std::string name : {"mean", "median", "min"}) {
      same("throughput_ops_s_" + name, "/throughput_ops_s/" + name);
    }
    for (const std::string name : {"throughput_ops_s", "to_pthread_mutex", "to_best"}) {
      same(name + "_ci95_lo", "/" + name + "/ci95/0");
      same(name + "_ci95_hi", "/" + name + "/ci95/1");
    }
    for (const std::string name : {"to_pthread_mutex", "to_best"}) {
      same(name + "_ratio", "/" + name + "/ratio");
    }
    for (const std::string name :
         {"min", "p10", "p25", "median", "p75", "p90", "p99", "p99.9", "max", "samples"}) {
      same("latency_ns_" + name, "/latency_ns/" + name);
    }
  }
  std::filesystem::remove_all(directory.parent_path());
}

TEST(BenchLock, WhereNothingCanBeWrittenNothingIsMeasured) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("muster-no-folder-" + std::to_string(getpid()));
  std::ofstream(file) << "kept";
  Program program(bench({"--seconds", "60", "--locks", "auto", "--output", file / "below"}));
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("below cannot be made: "));
  EXPECT_THAT(program.left(300s), IsEmpty());
  std::ifstream kept(file);
  std::string text;
  kept >> text;
  EXPECT_EQ(text, "kept");
  std::filesystem::remove(file);
}

TEST(BenchLock, RegimesHaveTheirRowsOrAreLeftOut) {
  const json results =
      run_json({"--regime", "hogs,quota50,late", "--locks", "auto,mcs,pthread_mutex", "--threads",
                "2", "--pattern", "sequential", "--turn", "50", "--rounds", "2"});
  std::set<std::string> there;
  for (const json& row : results.at("results")) there.insert(row.at("regime"));
  for (const json& item : results.at("left_out")) there.insert(item.at("implementation"));
  EXPECT_EQ(there, (std::set<std::string>{"hogs", "quota50", "late"}));
  ASSERT_FALSE(results.at("conclusions").empty());
  const json& conclusion = results.at("conclusions").at(0);
  // Not always of the hogs: on a busy machine their turns may bring too little to conclude.
  EXPECT_TRUE(there.contains(conclusion.at("regime")));
  EXPECT_EQ(conclusion.at("threads"), 2);
  for (const char* name : {"auto_to_best_own", "auto_to_best_peer", "best_own", "best_peer"}) {
    EXPECT_TRUE(conclusion.contains(name)) << name;
  }
}

TEST(BenchLock, ThreadsThatCannotBeMadeAreAFailure) {
  const Outcome outcome = run_muster_within(
      std::size_t{1} << 30, bench({"--threads", "400", "--locks", "mcs", "--seconds", "1"}));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, HasSubstr(" of 400 threads could be made"));
  EXPECT_EQ(outcome.err, "muster: one of ours failed: see above\n");
}

TEST(BenchLock, MistakesAreTold) {
  expect_refused(
      {"bench", "lock"},
      {
          {{"--locks", "auto,nonsense"}, "no lock \"nonsense\"; there are: all, ours, peers, "},
          {{"--locks", "std-mutex"}, ", pthread_mutex, std::mutex, "},
          {{"--threads", "0"}, "--threads 0: 1 to 4096"},
          {{"--threads", "1,5000"}, "--threads 5000: 1 to 4096"},
          {{"--threads", "x"}, "--threads"},
          {{"--array", "0"}, "--array: 1 to "},
          {{"--array", "4294967296"}, "--array: 1 to "},
          {{"--stride", "0"}, "--stride: 1 or more"},
          {{"--readers", "101"}, "--readers 101: 0 to 100"},
          {{"--readers", "-1"}, "--readers -1: 0 to 100"},
          {{"--readers", "nan"}, "--readers nan: 0 to 100"},
          {{"--pattern", "zigzag"}, "sequential, strided, random"},
          {{"--map-by", "nonsense"}, "core, numa, socket, none"},
          {{"--operations", "many"}, "--operations"},
          {{"--operations", "0"}, "--operations 0: 8 or more, one for each thread"},
          {{"--operations", "3", "--threads", "4,2"},
           "--operations 3: 4 or more, one for each thread"},
          {{"--rounds", "0"}, "--rounds"},
          {{"--regime", "hogs,nonsense"}, "no regime \"nonsense\"; there are: all, quota (both)"},
          {{"--regime", "hogs", "--operations", "100"}, "--operations"},
          {{"--turn", "0"}, "--turn: more than 0"},
          {{"--seconds", "0"}, "--seconds: more than 0, at most 86400"},
          {{"--seconds", "-1"}, "--seconds: more than 0, at most 86400"},
          {{"--seconds", "nan"}, "--seconds: more than 0, at most 86400"},
          {{"--seconds", "inf"}, "--seconds: more than 0, at most 86400"},
          {{"--seconds", "1e11"}, "--seconds: more than 0, at most 86400"},
          {{"--seconds", "0.019", "--threads", "1,2", "--locks", "mcs", "--pattern", "random"},
           "--seconds 0.019: 2 rows in 5 rounds take 0.02 at least"},
          {{"--json", "--csv"}, "exclude"},
          {{"nonsense"}, "one word too many"},
      });
}

TEST(BenchLock, KilledItLeavesNothing) {
  const std::vector<std::string> before = shared_memory_files();
  Program program(bench({"--seconds", "3600", "--threads", "2,4", "--locks", "auto,rcl,mcs"}));
  for (unsigned turn = 0; turn < 15000 && program.left(0ms).size() < 4; ++turn) {
    std::this_thread::sleep_for(20ms);
  }
  ASSERT_GE(program.left(0ms).size(), 4U) << "a process for each lock, and the one that asks";
  program.kill_it();
  program.wait();
  EXPECT_THAT(program.left(300s), IsEmpty());
  EXPECT_THAT(shared_memory_files(before), IsEmpty());
}

}  // namespace
