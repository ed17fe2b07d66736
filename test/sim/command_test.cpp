// SPDX-License-Identifier: BSD-3-Clause
// `muster sim`, as people use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "command.hpp"

namespace {

using nlohmann::json;
using testing::HasSubstr;

using Command = CommandTest;

TEST_F(Command, BarrierPrintsRows) {
  const std::string text =
      muster({"sim", "barrier", "--machine", "kunpeng920-2s", "--algorithms", "mcs,topo-NUMA",
              "--ranks", "32,64", "--map-by", "core,numa", "--members", "2", "--json"});
  const json result = json::parse(text);
  EXPECT_EQ(result.at("predicted"), true);
  ASSERT_EQ(result.at("results").size(), 8U);
  for (const json& row : result.at("results")) {
    EXPECT_EQ(row.at("machine"), "kunpeng920-2s");
    EXPECT_GT(row.at("latency_us").get<double>(), 0);
    EXPECT_LE(row.at("latency_us_low"), row.at("latency_us"));
    EXPECT_GE(row.at("latency_us_high"), row.at("latency_us"));
    EXPECT_GT(row.at("exit_skew_us_low"), 0);
    EXPECT_GT(row.at("exit_skew_us"), row.at("exit_skew_us_low"));
    EXPECT_LT(row.at("exit_skew_us"), row.at("exit_skew_us_high"));
    EXPECT_LT(row.at("exit_skew_us"), row.at("latency_us"));
  }
}

TEST_F(Command, TextIsSortedWithinEachTeamAndMarksTheFastest) {
  const Words words = {
      "sim",           "barrier",      "--machine",
      "kunpeng920-2s", "--algorithms", "all,scheduled-NUMA-PACKAGE:tree16+line16x4/tree16+line16x4",
      "--ranks",       "128,2",        "--map-by",
      "core,numa",     "--members",    "0"};
  Words with_json = words;
  with_json.emplace_back("--json");
  std::map<std::string, double> least;
  std::vector<std::string> asked;
  const json result = json::parse(muster(with_json));
  for (const json& row : result.at("results")) {
    const double us = row.at("latency_us");
    const std::string team = row.at("ranks").dump() + " " + row.at("map_by").get<std::string>();
    least[team] = std::min(us, least.try_emplace(team, us).first->second);
    if (team == "128 core") asked.push_back(row.at("algorithm"));
  }
  EXPECT_THAT(asked, testing::Contains("topo-NUMA"));
  EXPECT_EQ(asked.front(), "sense-reversing") << "not the fastest: the order asked";

  std::istringstream lines(muster(words));
  const std::regex heading(R"((\d+) ranks by (\w+), \* is the fastest)");
  const std::regex of_row(R"( *([\d.]+)  .*  (\*| ) .*)");
  std::smatch match;
  std::string team;
  double last_us = 0;
  std::vector<std::string> teams;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LT(line.size(), 80U) << line;
    if (std::regex_match(line, match, heading)) {
      team = match[1].str() + " " + match[2].str();
      teams.push_back(team);
      last_us = 0;
    } else if (!team.empty() && std::regex_match(line, match, of_row)) {
      const double us = std::stod(match[1]);
      EXPECT_GE(us, last_us) << line;
      if (last_us == 0) {
        EXPECT_EQ(match[2], "*") << line;
        EXPECT_NEAR(us, least.at(team), 0.005);
      }
      if (us > least.at(team) + 0.01) {
        EXPECT_EQ(match[2], " ") << line;
      }
      last_us = us;
    }
  }
  EXPECT_THAT(teams, testing::ElementsAre("128 core", "128 numa", "2 core", "2 numa"));
}

TEST_F(Command, AllMeansEveryKindAndEveryMask) {
  const std::string text = muster(
      {"sim", "barrier", "--machine", "kunpeng920-2s", "--ranks", "8", "--members", "0", "--csv"});
  for (const char* name :
       {"sense-reversing", "sense-reversing-counter", "sense-reversing-gr", "combining-tree", "mcs",
        "tournament", "dissemination", "base-linear", "base-double-ring", "base-recursive-doubling",
        "base-bruck", "base-tree", "combining-tree:4", "combining-tree:8", "combining-tree:16",
        "topo-counter", "topo-NUMA-SOCKET", "topo-NUMA", "topo-SOCKET"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + name + ",kunpeng920-2s,8,core,"));
  }
  EXPECT_THAT(text, HasSubstr("\ntopo-counter-NUMA,"));
}

TEST_F(Command, WhatWasPredictedForTwoPackagesIsWhatTheProgramPredicts) {
  const std::string results = std::string(MUSTER_SOURCE_DIR) + "/doc/results/kunpeng-128-";
  const std::string algorithms =
      "sense-reversing,sense-reversing-counter,sense-reversing-gr,combining-tree,mcs,tournament,"
      "dissemination,topo-NUMA-SOCKET,topo-NUMA,topo-SOCKET";
  std::istringstream rows(
      muster({"sim", "barrier", "--machine", results + "predicted.machine", "--algorithms",
              algorithms, "--ranks", "128", "--map-by", "core,numa,socket", "--csv"}));
  std::string text;  // without the exit skew, that it is predicted and what is chosen: later ones
  for (std::string row; std::getline(rows, row);) {
    for (int later = 0; later < 3; ++later) row.resize(row.rfind(','));
    text += row + "\n";
  }
  EXPECT_EQ(text, read(results + "predicted.csv"));
}

std::string with_digits(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

/// Throughput, in millions of sections a second, of a lock of 63 clients on the server of [K22].
double mops_of_63(const std::string& lock, const Words& more = {}) {
  Words words{"sim",       "lock", "--machine", "kunpeng920-2s", "--locks", lock,
              "--threads", "63",   "--pattern", "sequential",    "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const json result = json::parse(muster(words));
  return result.at("results").at(0).at("throughput_ops_s").get<double>() / 1e6;
}

// The papers' point, which README and doc/results.md publish as predictions.
TEST_F(Command, WhatIsPublishedOfRclOnManyCoresIsWhatTheProgramPredicts) {
  const std::filesystem::path tree(MUSTER_SOURCE_DIR);
  std::istringstream lines(read(tree / "doc/results.md"));
  const auto cells_of = [](const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, '|');) {
      std::erase_if(cell, [](char c) { return c == ' ' || c == '*' || c == '`'; });
      cells.push_back(cell);
    }
    return cells;
  };
  std::vector<std::string> head;
  std::vector<std::string> published;
  for (std::string line; std::getline(lines, line) && published.empty();) {
    if (line.starts_with("| clients | `rcl` |")) head = cells_of(line);
    if (!head.empty() && line.starts_with("| 63 |")) published = cells_of(line);
  }
  ASSERT_EQ(published.size(), head.size());
  std::map<std::string, double> mops;
  for (const char* lock : {"rcl", "flat-combining", "mcs"}) {
    const auto column = std::find(head.begin(), head.end(), lock) - head.begin();
    ASSERT_LT(static_cast<std::size_t>(column), head.size()) << lock;
    mops[lock] = mops_of_63(lock);
    EXPECT_EQ(published[static_cast<std::size_t>(column)], with_digits(mops[lock], 1)) << lock;
  }
  const std::string readme =  // wherever its lines end
      std::regex_replace(read(tree / "README.md"), std::regex(R"(\s+)"), " ");
  EXPECT_THAT(readme, HasSubstr("128 cores, " + with_digits(mops["rcl"], 0) +
                                " million sections a second with it, " +
                                with_digits(mops["flat-combining"], 0) + " with flat combining, " +
                                with_digits(mops["mcs"], 1) + " with an MCS lock."));
  EXPECT_THAT(readme, HasSubstr("If atomics are not LL/SC, an MCS lock does " +
                                with_digits(mops_of_63("mcs", {"--without", "ll-sc"}), 1)));
}

/// A chain: it begins where a rank arrives, its times ascend, who acts next is the same rank or one
/// that saw what this one did, and it ends with the last to leave.
void expect_path(const std::string& why, unsigned ranks) {
  const std::regex step(R"(^ *(\d+) ns  rank (\d+) (.*)$)");
  const std::regex of_other(R"((?:from|after) rank (\d+) \(same)");
  std::istringstream lines(why);
  std::smatch match;
  std::vector<std::string> what;
  long last_ns = 0;
  unsigned last_rank = 0;
  unsigned handed_over = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_match(line, match, step)) continue;
    const long ns = std::stol(match[1]);
    const auto rank = static_cast<unsigned>(std::stoul(match[2]));
    what.push_back(match[3]);
    EXPECT_LT(rank, ranks) << line;
    EXPECT_GE(ns, last_ns) << line;
    if (std::regex_search(what.back(), match, of_other)) {
      EXPECT_EQ(static_cast<unsigned>(std::stoul(match[1])), last_rank) << line;
      EXPECT_NE(rank, last_rank) << line;
      ++handed_over;
    } else if (what.size() > 1) {
      EXPECT_EQ(rank, last_rank) << line;
    }
    last_ns = ns;
    last_rank = rank;
  }
  ASSERT_GE(what.size(), 3U) << why;
  EXPECT_EQ(what.front(), "arrives");
  EXPECT_EQ(what.back(), "leaves, the last one");
  EXPECT_GE(handed_over, 2U) << why;  // up to the root, and down again
  EXPECT_THAT(why, HasSubstr("\nspent on\n"));
}

TEST_F(Command, WhyFindsAPathThroughEveryBarrier) {
  for (const char* name : {"sense-reversing", "sense-reversing-gr", "combining-tree", "mcs",
                           "dissemination", "topo-NUMA-SOCKET", "base-bruck"}) {
    SCOPED_TRACE(name);
    expect_path(muster({"sim", "barrier", "--machine", "kunpeng920-2s", "--algorithms", name,
                        "--ranks", "128", "--map-by", "numa", "--why"}),
                128);
  }
}

TEST_F(Command, TraceAndWhyShowOneEpisode) {
  const std::string trace = (folder_ / "trace.json").string();
  const std::string why = muster({"sim", "barrier", "--machine", "graviton3", "--algorithms",
                                  "tournament", "--ranks", "8", "--trace", trace, "--why"});
  expect_path(why, 8);
  const json events = json::parse(read(trace)).at("traceEvents");
  using Slice = std::pair<double, double>;
  std::map<unsigned, std::vector<json>> starts;
  std::map<unsigned, std::vector<json>> ends;
  const auto name_at = [&](const json& arrow) {  // of the innermost slice that holds it
    std::string name;
    double shortest = 1e9;
    for (const json& event : events) {
      if (event.at("ph") != "X" || event.at("tid") != arrow.at("tid")) continue;
      const double begin = event.at("ts");
      const double length = event.at("dur");
      const double at = arrow.at("ts");
      if (at < begin || at > begin + length || length > shortest) continue;
      name = event.at("name");
      shortest = length;
    }
    return name;
  };
  std::map<unsigned, std::vector<Slice>> tracks;
  for (const json& event : events) {
    if (event.at("ph") == "s") starts[event.at("id")].push_back(event);
    if (event.at("ph") == "f") ends[event.at("id")].push_back(event);
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts");
    tracks[event.at("tid")].emplace_back(begin, begin + event.at("dur").get<double>());
  }
  EXPECT_EQ(tracks.size(), 8U);
  // Each arrow begins at a store, ends at another rank's wait for that cell, and not before.
  EXPECT_GE(starts.size(), 14U);  // 7 up, 7 down
  EXPECT_EQ(starts.size(), ends.size());
  for (const auto& [id, begin] : starts) {
    ASSERT_EQ(begin.size(), 1U) << id;
    ASSERT_EQ(ends[id].size(), 1U) << id;
    const json& end = ends[id].front();
    EXPECT_EQ(begin.front().at("name"), end.at("name"));
    EXPECT_EQ(begin.front().at("cat"), end.at("cat"));
    EXPECT_LE(begin.front().at("ts"), end.at("ts"));
    EXPECT_NE(begin.front().at("tid"), end.at("tid"));
    EXPECT_EQ(end.at("bp"), "e");
    const std::string stored = name_at(begin.front());
    EXPECT_THAT(stored, testing::StartsWith("store to cell "));
    EXPECT_EQ("wait for " + stored.substr(std::string("store to ").size()), name_at(end));
  }
  // A viewer can draw them: of a track's slices the barrier's holds the others, which come one
  // after another; arrows begin and end inside of slices.
  constexpr double rounding_us = 2e-6;
  for (auto& [rank, slices] : tracks) {
    EXPECT_GE(slices.size(), 2U);
    const Slice barrier = slices.back();  // written when it is left
    slices.pop_back();
    double last = barrier.first;
    for (const Slice& slice : slices) {
      EXPECT_GE(slice.first, last - rounding_us) << "rank " << rank;
      last = slice.second;
    }
    EXPECT_LE(last, barrier.second + rounding_us);
  }
  for (const json& event : events) {
    if (event.at("ph") != "s" && event.at("ph") != "f") continue;
    const double at = event.at("ts");
    const auto& slices = tracks.at(event.at("tid"));
    EXPECT_TRUE(std::any_of(slices.begin(), slices.end(), [&](const Slice& slice) {
      return slice.first <= at && at <= slice.second;
    })) << event;
  }
}

TEST_F(Command, AFitFindsTheMachineThatWasMeasured) {
  // Measurements that the model itself made with other values.
  const std::string machine = (folder_ / "other.machine").string();
  std::string text =
      read(std::filesystem::path(MUSTER_SOURCE_DIR) / "sim/machines/kunpeng920-2s.machine");
  const auto at = text.find("agent-occupancy");
  text.replace(at, text.find(" |", at) - at, "agent-occupancy 14 ns");
  text.erase(text.find("\nsample") + 1);
  write(machine, text);
  const std::string rows =
      muster({"sim", "barrier", "--machine", machine, "--algorithms",
              "mcs,tournament,dissemination,combining-tree,base-double-ring,base-tree", "--ranks",
              "64", "--members", "0", "--csv"});
  const std::string measured = (folder_ / "measured.csv").string();
  write(measured, rows);
  const std::string fitted = (folder_ / "fitted.machine").string();
  const std::string said =
      muster({"sim", "fit", "--machine", "kunpeng920-2s", "--measured", measured, "--free",
              "agent-occupancy", "--evaluations", "40", "--samples", "0", "--output", fitted});
  EXPECT_THAT(said, HasSubstr("median error 0."));
  EXPECT_THAT(said, HasSubstr("\n  agent-occupancy "));
  EXPECT_THAT(said, HasSubstr("\n  message "));
  EXPECT_THAT(said, HasSubstr("base-double-ring"));
  EXPECT_THAT(read(fitted), HasSubstr("agent-occupancy 1"));
  const json validated = json::parse(muster({"sim", "validate", "--machine", fitted, "--measured",
                                             measured, "--naive-from", measured, "--json"}));
  EXPECT_LT(validated.at("summary").at("median_error").get<double>(), 0.02);
  EXPECT_EQ(validated.at("summary").at("median_error_by_seed").size(), 3U);
  EXPECT_TRUE(validated.at("ablation").at(0).at("without").is_null());
  EXPECT_GT(validated.at("ablation").size(), 8U);
}

// What each mechanism and parameter does: mechanism_test.cpp.
TEST_F(Command, WithoutAndSetChangeTheMachine) {
  const auto rows = [](const Words& change) {
    Words words{"sim",       "barrier", "--machine", "kunpeng920-2s", "--ranks",      "128",
                "--members", "0",       "--csv",     "--algorithms",  "mcs,base-tree"};
    words.insert(words.end(), change.begin(), change.end());
    return muster(words);
  };
  const std::string plain = rows({});
  EXPECT_EQ(rows({"--set", "latency-MACHINE=196,hit=1.2"}), plain);  // as the file has it
  const std::string changed = rows({"--without", "poll-turn,die-agent"});
  EXPECT_NE(changed, plain);
  EXPECT_EQ(changed, rows({"--set", "poll-turn=0,agent-occupancy=0"}));
  // What --set makes of the machine is what --without leaves out again.
  EXPECT_EQ(rows({"--set", "line-data=30", "--without", "line-data"}), plain);
  EXPECT_NE(rows({"--set", "line-data=30"}), plain);
}

TEST_F(Command, OutputIsWrittenAndDrawn) {
  const auto expect_files = [&](const std::string& name, const Words& words, const char* stem,
                                const std::set<std::string>& expected) {
    const std::filesystem::path folder = folder_ / name;
    Words all = words;
    all.insert(all.end(), {"--output", folder.string()});
    const Outcome outcome = run_muster(all);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    expect_written(folder, outcome, expected, {stem});
  };
  const Words barrier{"sim",          "barrier",       "--machine", "kunpeng920-2s",
                      "--algorithms", "mcs,topo-NUMA", "--members", "2"};
  const auto with = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_files("curves", with(barrier, {"--ranks", "8,16,64"}), "sim", {"sim.json", "sim.csv"});
  expect_files("bars", with(barrier, {"--ranks", "64", "--map-by", "core,numa"}), "sim",
               {"sim.json", "sim.csv"});
  const std::string measured =
      std::filesystem::path(MUSTER_SOURCE_DIR) / "doc/results/kunpeng-64-measured.csv";
  expect_files(
      "points",
      {"sim", "validate", "--machine", "kunpeng920-2s", "--measured", measured, "--members", "1"},
      "validate", {"validate.json"});
  expect_files("locks",
               {"sim", "lock", "--machine", "oak", "--locks", "rcl,mcs", "--threads", "2,3",
                "--window", "500", "--warm-up", "200"},
               "sim-lock", {"sim-lock.json", "sim-lock.csv"});
}

TEST_F(Command, LockPrintsRows) {
  const std::string text =
      muster({"sim", "lock", "--machine", "oak", "--locks", "rcl,mcs", "--threads", "2,3",
              "--pattern", "strided,random", "--affinity", "hierarchical", "--memory", "aware",
              "--window", "500", "--warm-up", "200", "--json"});
  const json result = json::parse(text);
  ASSERT_EQ(result.at("results").size(), 8U);
  for (const json& row : result.at("results")) {
    EXPECT_EQ(row.at("machine"), "oak");
    EXPECT_GT(row.at("throughput_ops_s").get<double>(), 0);
    EXPECT_GE(row.at("cache_misses_percent").get<double>(), 0);
    EXPECT_GT(row.at("latency_ns_mean").get<double>(), 0);
    EXPECT_GT(row.at("latency_ns_max").get<double>(), row.at("latency_ns_mean").get<double>());
    EXPECT_LE(row.at("latency_ns_p99").get<double>(), row.at("latency_ns_max").get<double>());
    EXPECT_NEAR(row.at("fairness").get<double>(), 1, 0.01);
    EXPECT_EQ(row.at("placement").get<std::string>().find('S') != std::string::npos,
              row.at("lock") == "rcl");
    EXPECT_TRUE(row.at("lock") != "rcl" || row.at("far_memory_percent") == 0);
  }
}

TEST_F(Command, LockShowsWhoStarves) {
  Words words{"sim", "lock",      "--machine", "oak",      "--locks", "ticket,robust", "--threads",
              "7",   "--pattern", "random",    "--window", "5000",    "--warm-up",     "200"};
  const std::string text = muster(words);
  EXPECT_THAT(text, testing::ContainsRegex("mean +p99 +longest +most/fewest"));
  EXPECT_THAT(text, testing::ContainsRegex("ticket .* [0-9.]+ us +1\n"));
  EXPECT_THAT(text, testing::ContainsRegex("robust .* [0-9.]+ ms +inf\n"));
  EXPECT_THAT(text,
              testing::ContainsRegex("ticket +random +7 +[0-9.]+ .*\nrobust .* 7 +[0-9.]+! "));
  EXPECT_THAT(text, HasSubstr("\n! a thread never got the lock"));
  words.push_back("--json");
  const json rows = json::parse(muster(words)).at("results");
  EXPECT_NEAR(rows.at(0).at("fairness").get<double>(), 1, 0.01);
  EXPECT_TRUE(rows.at(1).at("fairness").is_null());
  EXPECT_GT(rows.at(1).at("latency_ns_max"), 1e6);
  words.back() = "--csv";
  EXPECT_THAT(muster(words), testing::ContainsRegex("robust,oak,7,.*,inf,"));
}

TEST_F(Command, LockTriesEveryPlacement) {
  const std::string text =
      muster({"sim", "lock", "--machine", "oak", "--threads", "2", "--pattern", "sequential",
              "--placements", "all", "--window", "500", "--warm-up", "200", "--csv"});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 6);
  EXPECT_THAT(text, HasSubstr(",Sww.m|....,"));
  EXPECT_THAT(text, HasSubstr(",S...|ww..m,"));
}

/// The one row of a `sim lock`, short.
json lock_row(Words words) {
  words.insert(words.begin(), {"sim", "lock", "--machine", "oak", "--json"});
  if (std::find(words.begin(), words.end(), "--window") == words.end()) {
    words.insert(words.end(), {"--window", "1000", "--warm-up", "500"});
  }
  const json result = json::parse(muster(words));
  EXPECT_EQ(result.at("results").size(), 1U);
  return result.at("results").at(0);
}

TEST_F(Command, WanderingThreadsGiveTheMeanOfAllPlacements) {
  // The server on core 4: of the 21 pairs of the other cores 6 are in the other package, 12 in
  // both, 3 in the server's.
  const auto placed = [&](const std::string& threads) {
    const std::string file = (folder_ / "placed").string();
    write(file, "server 4\nallocator 0\nthreads " + threads + "\n");
    return lock_row({"--pattern", "random", "--threads", "2", "--affinity", file});
  };
  const std::pair<json, double> each[] = {
      {placed("0,1"), 6.0 / 21}, {placed("0,5"), 12.0 / 21}, {placed("5,6"), 3.0 / 21}};
  const json mean = lock_row({"--pattern", "random", "--threads", "2", "--affinity", "none",
                              "--server", "4", "--allocator", "0"});
  EXPECT_EQ(mean.at("placement"), "mean of all");
  EXPECT_EQ(mean.at("share"), 1);
  EXPECT_EQ(mean.at("far_memory_percent"), 100);
  double longest_ns = 0;
  for (const auto& [row, share] : each) {
    longest_ns = std::max(longest_ns, row.at("latency_ns_max").get<double>());
  }
  EXPECT_EQ(mean.at("latency_ns_max"), longest_ns);
  for (const char* key : {"throughput_ops_s", "private_misses_percent", "latency_ns_mean"}) {
    double expected = 0;
    for (const auto& [row, share] : each) expected += share * row.at(key).get<double>();
    EXPECT_NEAR(mean.at(key).get<double>(), expected, 1e-9 * expected) << key;
  }
  // Else any placement would be as good as their mean.
  EXPECT_LT(each[0].first.at("throughput_ops_s"), each[2].first.at("throughput_ops_s"));
}

TEST_F(Command, AStrideSaysHowManyAccessesShareALine) {
  const auto row = [](const Words& pattern) {
    Words words = {"--threads", "1", "--without", "prefetch", "--pattern"};
    words.insert(words.end(), pattern.begin(), pattern.end());
    return lock_row(words);
  };
  json sequential = row({"sequential"});
  for (const unsigned stride : {1U, 4U, 16U, 20U}) {
    const json strided = row({"strided", "--stride", std::to_string(stride)});
    EXPECT_EQ(strided.at("stride"), stride);
    // 16 words of 4 bytes in a line.
    EXPECT_NEAR(strided.at("cache_misses_percent").get<double>(),
                100.0 * std::min(stride, 16U) / 16, 1);
    if (stride != 1) continue;
    EXPECT_TRUE(sequential.at("stride").is_null());
    EXPECT_EQ(strided.at("throughput_ops_s"), sequential.at("throughput_ops_s"));
  }
}

TEST_F(Command, TheArrayIsWhereItsAllocatorIs) {
  const auto row = [](const char* allocator, const Words& more) {
    Words words{"--pattern",    "random",   "--threads", "2",           "--affinity",
                "hierarchical", "--server", "0",         "--allocator", allocator};
    words.insert(words.end(), more.begin(), more.end());
    return lock_row(words);
  };
  const json near = row("3", {});
  EXPECT_EQ(near.at("placement"), "Sww.m|....");
  EXPECT_EQ(near.at("far_memory_percent"), 0);
  const json far = row("5", {});
  EXPECT_EQ(far.at("placement"), "Sww.|....m");
  EXPECT_EQ(far.at("far_memory_percent"), 100);
  EXPECT_LT(far.at("throughput_ops_s"), near.at("throughput_ops_s"));
  EXPECT_EQ(row("5", {"--memory", "aware"}).at("placement"), "Sww.m|....");
  EXPECT_EQ(row("5", {"--init", "numa"}).at("placement"), "Sww.m|....");
}

TEST_F(Command, AnArrayThatFitsACacheIsThere) {
  const auto misses = [](const char* words, const char* which) {
    return lock_row({"--pattern", "random", "--threads", "1", "--array", words, "--window", "4000",
                     "--warm-up", "40000"})
        .at(which)
        .get<double>();
  };
  // Oak's L2 cache has 256 KiB and its L3 12 MiB.
  EXPECT_LT(misses("16384", "private_misses_percent"), 5);
  EXPECT_GT(misses("1048576", "private_misses_percent"), 80);
  EXPECT_GT(misses("500000000", "cache_misses_percent"), 95);
}

TEST_F(Command, ReproduceJudgesEveryClaim) {
  const std::string folder = (folder_ / "out").string();
  const Outcome outcome = run_muster({"sim", "reproduce", "--quick", "--json", "--output", folder});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("claims").size(), 30U);
  for (const json& claim : result.at("claims")) {
    for (const char* key : {"source", "claim", "modelled", "agrees_if"}) {
      EXPECT_FALSE(claim.at(key).get<std::string>().empty());
    }
    const std::string verdict = claim.at("verdict");
    EXPECT_TRUE(verdict == "agrees" || verdict == "partly" || verdict == "disagrees") << verdict;
  }
  // All placements of 2 to 5 threads.
  EXPECT_EQ(result.at("placements").at("oak"), 2 * (3 + 4 + 4 + 3));
  EXPECT_THAT(read(folder + "/reproduce.md"), HasSubstr("| [P17], Fig. 5a |"));
  EXPECT_EQ(result.at("barriers").size(), 12 + 3 * 15U);
  // Which figures are there, and that every one of them comes out.
  std::set<std::string> figures;
  double change_max = 0;
  std::map<std::string, int> placed;  // Figs. 6 and 7: bars by variant
  for (const json& row : result.at("results")) {
    const std::string figure = row.at("figure");
    figures.insert(figure);
    if (figure.starts_with("PS18 Fig. 6") || figure.starts_with("PS18 Fig. 7")) {
      ++placed[row.at("variant")];
    }
    change_max = std::max(change_max, std::abs(row.at("doubling_changes_percent").get<double>()));
  }
  EXPECT_THAT(figures,
              testing::ElementsAre("P17 Fig. 5", "PS18 Fig. 5a", "PS18 Fig. 5a, 122 ns",
                                   "PS18 Fig. 5a, chosen core", "PS18 Fig. 5b", "PS18 Fig. 5c",
                                   "PS18 Fig. 6a", "PS18 Fig. 6b", "PS18 Fig. 6c", "PS18 Fig. 6d",
                                   "PS18 Fig. 7a", "PS18 Fig. 7b", "PS18 Fig. 7c", "PS18 Fig. 7d"));
  EXPECT_EQ(placed["RCLLockInitDefault"], 3 * (28 + 28));  // a pattern each
  EXPECT_EQ(placed["RCLLockInitNUMA"], placed["RCLLockInitDefault"]);
  EXPECT_GT(change_max, 0);
  EXPECT_LE(change_max, result.at("doubling_changes_percent_max").get<double>());
  const std::vector<std::string> pictures{"p17-fig5", "ps18-fig5", "ps18-fig6", "ps18-fig7"};
  if (expect_written(folder, outcome, {"reproduce.json", "reproduce.md"}, pictures)) {
    for (const std::string& picture : pictures) {
      for (const char* type : {".png", ".svg"}) {
        EXPECT_GT(std::filesystem::file_size(folder + "/" + picture + type), 10'000U);
      }
    }
  }
}

TEST_F(Command, MistakesSayWhatToDo) {
  const std::string bad = folder_ / "bad.csv";
  write(bad, "a,b\n1,2\n");
  const std::string endless = folder_ / "endless.csv";
  write(endless, "algorithm,ranks,latency_us\nmcs,4,inf\n");
  const Words barrier{"sim", "barrier", "--machine", "graviton3"};
  const Words lock{"sim", "lock", "--machine", "oak"};
  const struct {
    Words command, more;
    const char* says;
  } mistakes[] = {
      {barrier, {"--why"}, "one barrier"},
      {barrier, {"--without", "x"}, "read-queues"},
      {barrier, {"--set", "hit=nan"}, "is within"},
      {barrier, {"--set", "poll-overlap=0"}, "is within"},
      {barrier, {"--set", "latency-MACHINE=-3"}, "is within"},
      {barrier, {"--ranks", "65"}, "has 64 cores"},
      {barrier, {"--why", "--csv"}, "exclude each other"},
      {lock, {"--server", "9"}, "0 to 7"},
      {lock, {"--server", "1"}, "the placement says"},
      {lock, {"--set", "hit"}, "NAME=NUMBER"},
      {{"machine", "import", "--latencies", bad},
       {"--topology", "core:2 pu:1", "--name", "x"},
       "bad.csv:1: \"a\" is no time"},
      {{"sim", "validate"},
       {"--machine", "graviton3", "--measured", bad},
       "bad.csv:1: the header has no column algorithm"},
      {{"sim", "fit"},
       {"--machine", "graviton3", "--measured", endless},
       "endless.csv:2: latency_us"},
  };
  for (const auto& mistake : mistakes) {
    Words words = mistake.command;
    words.insert(words.end(), mistake.more.begin(), mistake.more.end());
    const Outcome outcome = run_muster(words);
    EXPECT_EQ(outcome.exit_code, 2) << mistake.says;
    EXPECT_THAT(outcome.err, HasSubstr(mistake.says));
  }
}

}  // namespace
