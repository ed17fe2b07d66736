// SPDX-License-Identifier: BSD-3-Clause
#include "bench/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "bench/barrier_report.hpp"
#include "csv.hpp"
#include "machine/format.hpp"

namespace muster::bench {
namespace {

Row row(std::string implementation, double lo, double median, double hi) {
  Row result;
  result.ours = implementation == "muster";
  result.implementation = std::move(implementation);
  result.algorithm = "a";
  result.via = result.ours ? "c" : "";
  result.participants = 2;
  result.map_by = "core";
  result.mean_ns = median;
  result.latency_ns = {median, lo, hi, {lo, hi}, 10};
  result.round_medians_ns = {median, median};
  return result;
}

void expect_narrow(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

/// In a turn of the hogs.
Row in_a_turn(Row each, double mean_ns) {
  each.regime = parse_regimes({"hogs"}).front();
  each.mean_ns = mean_ns;
  each.mean_ci95 = {0.9 * mean_ns, 1.1 * mean_ns};
  each.round_means_ns = {mean_ns, mean_ns};
  each.singles_ns = latency_distribution({{5, 1}, {7, 1}});
  each.cpu_ns = 99.8e6;
  return each;
}

TEST(Report, OneIsOne) {
  EXPECT_EQ(counted(1, "ranks"), "1 rank");
  EXPECT_EQ(counted(1, "processes"), "1 process");
  EXPECT_EQ(counted(16, "processes"), "16 processes");
  EXPECT_EQ(counted(1, "mutexes"), "1 mutex");
  EXPECT_EQ(counted("4.56 M", "locks"), "4.56 M locks");
}

TEST(RankRows, NoOrderWhereIntervalsOverlap) {
  std::vector<Row> rows{row("muster", 10, 11, 12), row("x", 11, 13, 14), row("y", 20, 21, 22)};
  rank_rows(rows);
  EXPECT_EQ(rows[0].place, 1U);
  EXPECT_TRUE(rows[0].tied);
  EXPECT_EQ(rows[1].place, 1U);  // nobody is surely faster
  EXPECT_TRUE(rows[1].tied);
  EXPECT_EQ(rows[2].place, 3U);
  EXPECT_FALSE(rows[2].tied);
}

TEST(RankRows, RatioIsToTheBestPeer) {
  std::vector<Row> rows{row("muster", 10, 11, 12), row("x", 19, 20, 21), row("y", 21, 22, 23)};
  rank_rows(rows);
  EXPECT_DOUBLE_EQ(rows[0].to_best_peer.ratio, 0.55);
  EXPECT_TRUE(rows[0].to_best_peer.intervals_apart);
  EXPECT_DOUBLE_EQ(rows[1].to_best_peer.ratio, 1);
  EXPECT_FALSE(rows[1].to_best_peer.intervals_apart);
  EXPECT_DOUBLE_EQ(rows[2].to_best_peer.ratio, 1.1);
  EXPECT_FALSE(rows[2].to_best_peer.intervals_apart);
}

TEST(RankRows, TheLimitIsComparedWithToo) {
  std::vector<Row> rows{row("muster", 10, 11, 12), row("limit", 9, 10, 11)};
  rows[1].kind = Other::reference;
  rank_rows(rows);
  EXPECT_DOUBLE_EQ(rows[0].to_limit.ratio, 1.1);
  EXPECT_FALSE(rows[0].to_limit.intervals_apart);
  EXPECT_DOUBLE_EQ(rows[0].to_limit.paired.ratio, 1.1);
  EXPECT_EQ(rows[0].to_best_peer.ratio, 0);
  EXPECT_EQ(rows[1].to_limit.ratio, 0);
}

TEST(RankRows, ReferencesAndTheUnfinishedHaveNoPlace) {
  std::vector<Row> rows{row("limit", 1, 2, 3), row("x", 0, 0, 0), row("muster", 10, 11, 12)};
  rows[0].kind = Other::reference;
  rows[1].status = RowStatus::did_not_finish;
  rank_rows(rows);
  EXPECT_EQ(rows[0].place, 0U);
  EXPECT_EQ(rows[1].place, 0U);
  EXPECT_EQ(rows[2].place, 1U);
  EXPECT_EQ(rows[2].to_best_peer.ratio, 0);  // there is no peer to compare with
}

TEST(DefaultParticipants, OneEachAndOversubscribed) {
  EXPECT_EQ(default_participants(1), (std::vector<unsigned>{2, 4, 8}));
  EXPECT_EQ(default_participants(2), (std::vector<unsigned>{2, 4, 8}));
  EXPECT_EQ(default_participants(12), (std::vector<unsigned>{2, 4, 8, 16}));
  EXPECT_EQ(default_participants(64), (std::vector<unsigned>{2, 4, 8, 16, 32, 64, 128}));
}

TEST(FormatNs, ThreeDigits) {
  EXPECT_EQ(format_ns(54.2), "54.2 ns");
  EXPECT_EQ(format_ns(5), "5.00 ns");
  EXPECT_EQ(format_ns(999.4), "999 ns");
  EXPECT_EQ(format_ns(999.6), "1.00 us");
  EXPECT_EQ(format_ns(2310), "2.31 us");
  EXPECT_EQ(format_ns(15.2e6), "15.2 ms");
  EXPECT_EQ(format_ns(2e12), "2000 s");
}

RunResults two_rows() {
  RunResults results;
  results.options.participants = {2};
  results.rows = {row("muster", 10, 11, 12), row("x", 0, 0, 0)};
  results.rows[1].status = RowStatus::did_not_finish;
  results.rows[1].reason = "it hung, \"as\" expected";
  rank_rows(results.rows);
  return results;
}

TEST(ToJson, UnfinishedRowsHaveNoNumbers) {
  const auto json = to_json(two_rows());
  ASSERT_EQ(json.at("results").size(), 2U);
  const auto& ok = json.at("results").at(0);
  EXPECT_EQ(ok.at("status"), "ok");
  EXPECT_EQ(ok.at("latency_ns").at("median"), 11.0);
  EXPECT_EQ(ok.at("latency_ns").at("ci95"), (nlohmann::ordered_json{10.0, 12.0}));
  const auto& unfinished = json.at("results").at(1);
  EXPECT_EQ(unfinished.at("status"), "did not finish");
  for (const char* name : {"mean", "mean_ci95", "median", "min", "p99", "p99.9", "ci95"}) {
    EXPECT_TRUE(unfinished.at("latency_ns").at(name).is_null()) << name;
  }
  EXPECT_TRUE(unfinished.at("rank").is_null());
}

TEST(ToCsv, EveryLineHasEveryField) {
  std::istringstream lines(to_csv(two_rows()));
  const auto table = test::read_csv(lines);
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table[0].at("median_ns"), "11.0");
  EXPECT_EQ(table[0].at("ci95_hi_ns"), "12.0");
  EXPECT_EQ(table[1].at("median_ns"), "");
  EXPECT_EQ(table[1].at("ci95_hi_ns"), "");
  EXPECT_EQ(table[1].at("reason"), "it hung, \"as\" expected");
  EXPECT_EQ(table[1].at("verdict"), "quiet");
}

TEST(ToText, SaysWhatIsUncertain) {
  RunResults results = two_rows();
  results.rows.push_back(row("y", 11, 12, 13));
  rank_rows(results.rows);
  const std::string text = to_text(results);
  EXPECT_NE(text.find("1="), std::string::npos) << text;
  EXPECT_NE(text.find("1.09~"), std::string::npos) << text;
  EXPECT_NE(text.find("did not finish: it hung"), std::string::npos) << text;
}

TEST(ToText, SaysForHowManyNoTimeWasLeft) {
  RunResults results = two_rows();
  results.elapsed_s = 2.6;
  EXPECT_EQ(to_text(results).find("No time"), std::string::npos);
  results.without_time = 1;
  EXPECT_NE(to_text(results).find("\nNo time was left for 1 of 2 barriers. All take about "
                                  "--seconds 6.\n"),
            std::string::npos)
      << to_text(results);
  results.without_time = 2;
  EXPECT_NE(to_text(results).find("2 of 2 barriers. Raise --seconds.\n"), std::string::npos);
}

TEST(ToText, FitsATerminal) {
  RunResults results;
  results.rows = {row("muster", 99.8, 99.9, 1.01e6), row("ck-dissemination", 998e6, 999e6, 1e9)};
  results.rows[0].algorithm = "auto";
  results.rows[0].serves = "sense-reversing-pu";
  for (Row& each : results.rows) {
    each.exit_skews = 1;
    each.exit_skew_ns = 15.2e6;
    each.mean_ns = 998e6;
    each.noise.noisy = true;
  }
  rank_rows(results.rows);
  expect_narrow(to_text(results));
}

/// Of one group that was measured in turns.
RunResults turns() {
  RunResults results;
  results.options.regimes = {"hogs"};
  for (const auto& [name, wait, mean_ns] :
       {std::tuple{"muster", "auto", 30e3}, std::tuple{"muster", "sleep", 20e3},
        std::tuple{"muster", "spin", 998e6}, std::tuple{"pthread_barrier", "", 60e3},
        std::tuple{"ck-dissemination", "", 999e6}}) {
    Row each = in_a_turn(row(name, 1, 2, 3), mean_ns);
    if (each.ours) each.algorithm = "auto";
    each.serves = "sense-reversing-pu";
    each.wait_asked = wait;
    each.noise.noisy = true;
    results.rows.push_back(std::move(each));
  }
  rank_rows(results.rows);
  return results;
}

TEST(Turns, AreRankedByTheirMeans) {
  const RunResults results = turns();
  EXPECT_EQ(results.rows[0].place, 2U);
  EXPECT_EQ(results.rows[1].place, 1U);
  EXPECT_DOUBLE_EQ(results.rows[0].to_best_peer.ratio, 0.5);
  EXPECT_DOUBLE_EQ(results.rows[0].to_best_peer.paired.ratio, 0.5);
}

TEST(Turns, ConcludeWithRatiosOfMeans) {
  const RunResults results = turns();
  const auto json = to_json(results);
  ASSERT_EQ(json.at("conclusions").size(), 1U);
  const auto& conclusion = json.at("conclusions").at(0);
  EXPECT_EQ(conclusion.at("regime"), "hogs");
  EXPECT_EQ(conclusion.at("best_own"), "sleep");
  EXPECT_EQ(conclusion.at("auto_to_best_own"), 1.5);
  EXPECT_EQ(conclusion.at("best_peer"), "pthread_barrier");
  EXPECT_EQ(conclusion.at("auto_to_best_peer"), 0.5);
  const auto& first = json.at("results").at(0);
  EXPECT_EQ(first.at("regime"), "hogs");
  EXPECT_EQ(first.at("wait_asked"), "auto");
  EXPECT_EQ(first.at("latency_ns").at("mean"), 30e3);
  EXPECT_EQ(first.at("latency_ns").at("median"), 5.0);
  EXPECT_TRUE(first.at("latency_ns").at("p99.9").is_null()) << "two samples say nothing of it";
  EXPECT_EQ(first.at("cpu_ns_per_episode"), 99.8e6);
}

/// As turns(), but under two MPIs, whose own barriers take 60 us, and ours 30 us and less.
RunResults mpi_turns() {
  static const MpiContender contender;  // there is one
  RunResults results;
  results.options.regimes = {"hogs"};
  results.options.mpi = {contender};
  for (const auto& [mpi, own_ns] : {std::pair{"Open MPI 4.1.4", 60e3}, {"MPICH 4.0.2", 998e6}}) {
    std::vector<Row> rows;
    for (const auto& [barrier, mean_ns] : {std::pair{"default", own_ns},
                                           {"muster (component)", 30e3},
                                           {"muster (preload)", 7.5e3}}) {
      Row each = in_a_turn(row(barrier, 1, 2, 3), mean_ns);
      each.mpi = mpi;
      each.algorithm = barrier;
      each.ours = each.algorithm != "default";
      each.wait_asked = "auto";
      rows.push_back(std::move(each));
    }
    rank_rows(rows);
    results.rows.insert(results.rows.end(), rows.begin(), rows.end());
  }
  return results;
}

TEST(MpiTurns, OursAreAMultipleOfTheirMpisOwn) {
  const auto json = to_json(mpi_turns());
  EXPECT_EQ(json.at("benchmark"), "mpi");
  ASSERT_EQ(json.at("conclusions").size(), 2U);
  const auto& conclusion = json.at("conclusions").at(0);
  EXPECT_EQ(conclusion.at("regime"), "hogs");
  EXPECT_EQ(conclusion.at("mpi"), "Open MPI 4.1.4");
  EXPECT_EQ(conclusion.at("muster_to_own"), 0.25) << "the geometric mean of 1/2 and 1/8";
  EXPECT_EQ(conclusion.at("rows"), 2);
  const auto& last = json.at("results").at(5);
  EXPECT_EQ(last.at("mpi"), "MPICH 4.0.2");
  EXPECT_EQ(last.at("barrier"), "muster (preload)");
  EXPECT_EQ(last.at("ours"), true);
  EXPECT_EQ(last.at("ranks"), 2);
  EXPECT_EQ(last.at("regime"), "hogs");
  EXPECT_EQ(last.at("latency_ns").at("mean"), 7.5e3);
  EXPECT_EQ(last.at("cpu_ns_per_episode"), 99.8e6);
}

TEST(MpiTurns, CloseWithASentenceAndFitATerminal) {
  const std::string text = to_text(mpi_turns());
  EXPECT_NE(text.find("\nhogs: 2 ranks, Open MPI 4.1.4"), std::string::npos) << text;
  EXPECT_NE(text.find("\nIn hogs, Muster takes 0.25 times the time of Open MPI 4.1.4's own barrier,"
                      "\nand 1/67000 times that of MPICH 4.0.2's\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("auto"), std::string::npos) << text;
  expect_narrow(text);
}

TEST(Turns, FitATerminal) {
  const std::string text = to_text(turns());
  EXPECT_NE(text.find("In hogs, auto takes 1.5 times"), std::string::npos) << text;
  expect_narrow(text);
}

// See also Summary.RatiosAreWhatAPersonSays.
TEST(FormatTimes, NeverZero) {
  EXPECT_EQ(format_times(0.71), "0.71");
  EXPECT_EQ(format_times(0.0027), "1/370");
  EXPECT_EQ(format_times(-1), "-");
  EXPECT_EQ(format_times(0), "-");
}

}  // namespace
}  // namespace muster::bench
