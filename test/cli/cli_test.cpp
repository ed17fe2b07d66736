// SPDX-License-Identifier: BSD-3-Clause
// Exit codes, help and messages, and `muster list`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "bench/lock_team.hpp"
#include "muster/muster.h"
#include "program.hpp"

namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

TEST(Cli, HelpAndVersionSucceed) {
  for (const Words& words :
       {Words{"--help"}, Words{"-h"}, Words{"topo", "--help"}, Words{"list", "--help"},
        Words{"bench", "--help"}, Words{"bench", "barrier", "--help"}}) {
    const Outcome outcome = run_muster(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("Usage"));
    EXPECT_EQ(outcome.err, "");
  }
  const Outcome outcome = run_muster({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("muster [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

// Those of the benchmarks, of measure and of run: their own tests.
TEST(Cli, MistakesInTheCommandLineAreTwo) {
  expect_refused({
      {{}, "there are: "},
      {{"nonsense"}, "no command \"nonsense\"; there are: "},
      {{"--nonsense"}, "--nonsense"},
      {{"bench"}, "barrier"},
      {{"bench", "nonsense"}, "no command \"nonsense\"; there are: barrier"},
      {{"topo", "--nonsense"}, "no option --nonsense (help: muster topo --help)"},
      {{"topo", "nonsense"}, "\"nonsense\" is one word too many"},
      {{"topo", "--ranks", "many"}, "--ranks: many is not in 1 to 65536"},
      {{"topo", "--ranks", "0"}, "--ranks: 0 is not in 1"},
      {{"topo", "--ranks"}, "--ranks: its value is missing"},
      {{"topo", "--topology", "nonsense"}, "neither a file nor a synthetic topology"},
      {{"topo", "--machine", "kunpeng"}, "or one of: epyc-7763-2s, "},
      {{"place", "--machine", "kunpeng"}, "or a machine's description file"},
      {{"explain", "--machine", "kunpeng"}, "or one of: epyc-7763-2s, "},
      {{"topo", "--topology", "package:2 core:two"}, "neither a file nor a synthetic topology"},
      {{"topo", "--topology", MUSTER_PROGRAM}, "is neither XML nor a synthetic topology"},
      {{"topo", "--levels", "L7"}, "L2"},
      {{"topo", "--map-by", "nonsense"}, "core, numa, socket"},
      {{"topo", "--topology", "core:4 pu:1", "--bindings", "0", "xyz"}, "rank 1: locality"},
      {{"topo", "--topology", "core:4 pu:1", "--bindings", "0", "4"}, "rank 1 is bound to PU 4"},
      {{"explain", "nonsense"}, "\"nonsense\" is one word too many"},
      {{"explain", "-p", "many"}, "is no number"},
      {{"explain", "-p", "-1"}, "--participants: -1 is out of range"},
      {{"explain", "-p", "1.5"}, "--participants: 1.5 is no whole number"},
      {{"explain", "\x1b]0;x"}, "\"\\x1b]0;x\" is one word too many"},
      {{"explain", "-p", "0"}, "1 to 65536"},
      {{"explain", "-p", "65537"}, "1 to 65536"},
      {{"explain", "-a", "nonsense"}, "sense-reversing-counter"},
      {{"explain", "-a", "topo-NONSENSE"}, "NUMA"},
      {{"explain", "-w", "nonsense"}, "spin-yield-sleep"},
      {{"explain", "-m", "nonsense"}, "core, numa, socket"},
      {{"explain", "-t", "nonsense", "-m", "core"}, "neither a file nor a synthetic topology"},
      {{"explain", "-p", "3", "-b", "0", "1"}, "each of 3 participants"},
      {{"explain", "-p", "2", "-t", "core:4 pu:1", "-b", "0", "99"}, "rank 1 is bound to PU 99"},
      {{"explain", "-p", "2", "-t", "core:4 pu:1", "-b", "0", "xyz"}, "rank 1: locality"},
      {{"explain", "-p", "1", "-b", "0", "-m", "core"}, "contradict"},
      {{"check", "--nonsense"}, "no option --nonsense (help"},
      {{"topo", "--jso"}, "no option --jso; there is --json (help: muster topo --help)"},
      {{"check", "--algorithms", "nonsense"}, "dissemination"},
      {{"check", "--participants", "0"}, "--participants: 0 is not in 1"},
      {{"check", "--participants", "x"}, "--participants: x is not in 1"},
      {{"check", "--episodes", "0"}, "--episodes"},
      {{"bench", "barrier", "--seed", "-1"}, "--seed: -1 is out of range"},
      {{"bench", "lock", "--operations", "-1"}, "--operations: -1 is out of range"},
      {{"bench", "lock", "--stride", "99999999999999999999"}, "is out of range"},
      {{"bench", "lock", "--seconds", ""}, "--seconds: its value is empty"},
      {{"bench", "mpi", "--ranks", "0"}, "--ranks: 0 is not in 1"},
      {{"bench", "mpi", "--output", ""}, "--output: its value is empty"},
      {{"bench", "summary"}, "folder"},
      {{"topo", "--svg", ""}, "--svg: its value is empty"},
      {{"topo", "--svg", "--json"}, "--svg: its value is missing"},
      {{"run", "--json", "--", "true"}, "--json: its value is missing"},
      {{"report", "/tmp", "--output", "--"}, "--output: its value is missing"},
      {{"place", "--servers", "-1"}, "--servers"},
      {{"place", "--servers", "0", "--threads", "5"}, "placed around servers"},
      {{"place", "--at", ""}, "--at: its value is empty"},
      {{"bench", "lock", "--threads", ""}, "--threads: its value is empty"},
      {{"place", "--policy", "nonsense"}, "pack, spread"},
      {{"list", "nonsense"}, "one word too many"},
      {{"measure", "--from", "a.csv", "--cpus", "0-1"}, "without --cpus and --rounds"},
      {{"measure", "--from", "a.csv", "--rounds", "2"}, "without --cpus and --rounds"},
      {{"report"}, "folder"},
      {{"compare"}, "old"},
      {{"doctor", "--mpirun", ""}, "--mpirun: its value is empty"},
      {{"run", "--servers", "nan", "--", "true"}, "--servers"},
      {{"run", "--mutex", "", "--", "true"}, "--mutex: its value is empty"},
      {{"run", "--"}, "program is required"},
      {{"run", "--barrier", "mcs", "--", "true"}, "a flag's value after ="},
      {{"doctor", "--only", "nonsense"}, "no check \"nonsense\"; there are:"},
      {{"doctor", "--mpi-library", "/x"}, "--mpi-library goes with --mpirun"},
      {{"doctor", "--mpirun", "nonsense -n 2"}, "name its library"},
  });
  expect_refused({"bench", "mpi"}, {
                                       {{"--regime", "hogs,nonsense"},
                                        "no regime \"nonsense\"; there are: all, quota (both)"},
                                       {{"--regime", "hogs", "--turn", "0"}, "--turn: more than 0"},
                                       {{"--regime", "hogs", "--osu"}, "--osu"},
                                   });
}

TEST(Cli, MistakesAboutTheModelAreTwo) {
  if (run_muster({"sim", "--help"}).exit_code != 0) GTEST_SKIP() << "built without muster sim";
  expect_refused({
      {{"sim", "lock", "--machine", "oak", "--readers", "nan"}, "--readers: \"nan\" is no number"},
      {{"sim"}, "there are: barrier"},
      {{"sim", "nonsense"}, "no command \"nonsense\"; there are: barrier"},
      {{"sim", "barrier", "--machine", "nonsense"}, "kunpeng920-2s"},
      {{"sim", "barrier"}, "or one of: epyc-7763-2s, "},
      {{"tune", "--machine", "oak", "--seconds", "1"}, "go without --machine"},
      {{"sim", "barrier", "--machine", "kunpeng920-2s", "--algorithms", "nonsense"},
       "dissemination"},
      {{"sim", "barrier", "--machine", "kunpeng920-2s", "--map-by", "nonsense"},
       "core, numa, socket"},
      {{"sim", "barrier", "--machine", "kunpeng920-2s", "--without", "nonsense"}, "nonsense"},
      {{"sim", "barrier", "--machine", "kunpeng920-2s", "--ranks", "0"}, "--ranks: 0 is not in 1"},
      {{"sim", "barrier", "--machine", "kunpeng920-2s", "--json", "--csv"}, "exclude each other"},
      {{"sim", "barrier", "--machine", ""}, "--machine: its value is empty"},
      {{"sim", "lock", "--machine", "oak", "--locks", "nonsense"}, "flat-combining"},
      {{"sim", "lock", "--machine", "oak", "--array", "1e30"}, "--array"},
      {{"sim", "lock", "--machine", "oak", "--affinity", "nonsense"},
       "there is no file 'nonsense'"},
      {{"sim", "fit", "--machine", "oak"}, "--measured"},
      {{"sim", "validate", "--machine", "oak"}, "--measured"},
      {{"sim", "reproduce", "--papers", "nonsense"}, "K22"},
      {{"tune", "--machine", "oak", "--starts", "6"}, "--starts: 6 is not in 1"},
      {{"machine"}, "there are: "},
      {{"machine", "import", "--name", "x"}, "--latencies"},
      {{"machine", "measure", "--rounds", "0"}, "--rounds: 0 is not in 1"},
  });
}

TEST(Cli, FailuresAreOne) {
  for (const Words& words :
       {Words{"bench", "barrier", "--output", "/proc/nowhere"}, {"topo", "--svg", "/proc/a.svg"}}) {
    const Outcome outcome = run_muster(words);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("muster: /proc/"));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Explain, SpeaksOfTheNamedMachineAlone) {
  for (const char* machine : {"kunpeng920-2s", "package:2 numa:2 core:32 pu:1"}) {
    const auto row = [&](const char* participants, const Words& more) {
      Words words = {"explain", "--machine", machine, "--json", "-p", participants};
      words.insert(words.end(), more.begin(), more.end());
      const Outcome outcome = run_muster(words);
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      return json::parse(outcome.out).at("results").at(0);
    };
    for (const Words& where : {Words{"-m", "core"}, Words{}}) {
      const json fits = row("128", where);
      EXPECT_EQ(fits.at("usable_cpus"), 128);
      EXPECT_NE(fits.at("algorithm"), "sense-reversing-pu");
    }
    EXPECT_EQ(row("129", {}).at("algorithm"), "sense-reversing-pu");
    EXPECT_EQ(row("200", {"-m", "core"}).at("algorithm"), "topo-counter-CORE");
  }
}

TEST(Explain, LeavesOutLevelsWhereNobodyMeets) {
  for (const char* algorithm : {"topo", "scheduled"}) {
    const Outcome outcome = run_muster(
        {"explain", "-t", "kunpeng920-2s", "-p", "8", "-m", "core", "-a", algorithm, "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("NUMA, 1 group of 8: "));
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr("of 1: ")));
  }
}

TEST(Explain, SaysInWordsWhatHappens) {
  const auto steps = [](const char* algorithm) {
    const Outcome outcome = run_muster({"explain", "-t", "package:2 numa:2 core:4 pu:1", "-p", "16",
                                        "-m", "core", "-a", algorithm, "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out).at("results").at(0).at("steps");
  };
  EXPECT_EQ(steps("topo-NUMA").at(0),
            "NUMA, 4 groups of 4: the leader polls a counter of each member");
  EXPECT_EQ(steps("topo-NUMA").size(), 3U);
  const json composed = steps("scheduled-NUMA:tree2+line3/all");
  ASSERT_EQ(composed.size(), 3U);
  EXPECT_THAT(composed.at(0).get<std::string>(), HasSubstr("a tree of 2 children"));
  EXPECT_EQ(composed.at(1), "MACHINE, 1 group of 4: each tells each, so that all know");
  EXPECT_EQ(composed.at(2), "NUMA, 4 groups of 4: a line tells up to 3 of them");
  EXPECT_THAT(steps("tournament").at(0).get<std::string>(), StartsWith("4 rounds: "));
  for (const char* name : {"mcs", "dissemination", "sense-reversing", "sense-reversing-counter",
                           "combining-tree:4", "topo-counter", "scheduled", "sense-reversing-pu"}) {
    EXPECT_GE(steps(name).size(), 1U) << name;
  }
}

TEST(Explain, PredictsOnAModelledMachine) {
  if (run_muster({"sim", "--help"}).exit_code != 0) GTEST_SKIP() << "built without muster sim";
  Words words = {"explain", "--machine", "kunpeng920-2s", "-p", "128", "-m", "core"};
  const Outcome text = run_muster(words);
  EXPECT_THAT(text.out, HasSubstr("\npredicted     "));
  EXPECT_THAT(text.out, HasSubstr("\nstep 1 "));
  for (std::size_t from = 0; from < text.out.size(); from = text.out.find('\n', from) + 1) {
    EXPECT_LT(text.out.find('\n', from) - from, 80U) << text.out.substr(from, 90);
  }
  words.emplace_back("--json");
  const json row = json::parse(run_muster(words).out).at("results").at(0);
  const json& predicted = row.at("predicted");
  ASSERT_EQ(predicted.size(), 4U);
  EXPECT_EQ(predicted.at(0).at("algorithm"), row.at("algorithm"));
  for (const json& each : predicted) {
    EXPECT_LE(each.at("latency_us_low"), each.at("latency_us"));
    EXPECT_GT(each.at("exit_skew_us"), 0);
    EXPECT_EQ(each == predicted.at(0), each.at("algorithm") == row.at("algorithm"));
  }
  EXPECT_LE(predicted.at(1).at("latency_us"), predicted.at(2).at("latency_us"));
  EXPECT_LE(predicted.at(2).at("latency_us"), predicted.at(3).at("latency_us"));
  const auto why_not = [](const Words& asked) {
    Words all = {"explain", "--machine"};
    all.insert(all.end(), asked.begin(), asked.end());
    return run_muster(all).out;
  };
  EXPECT_THAT(why_not({"kunpeng920-2s", "-p", "4"}), HasSubstr("say --map-by"));
  EXPECT_THAT(why_not({"kunpeng920-2s", "-p", "129", "-m", "core"}),
              HasSubstr("gives each participant a core"));
  EXPECT_THAT(why_not({"core:4 pu:2", "-p", "2", "-b", "0", "1"}), HasSubstr("share a core"));
}

TEST(Explain, TakesWhatTheModelTakes) {
  if (run_muster({"sim", "--help"}).exit_code != 0) GTEST_SKIP() << "built without muster sim";
  const auto row = [](const Words& words) {
    const Outcome outcome = run_muster(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out).at("results").at(0);
  };
  for (const char* machine : {"package:2 numa:1 l3:8 core:8 pu:1", "epyc-7763-2s"}) {
    for (const char* setting : {"call=250,poll-turn=240", "call=5,poll-turn=10"}) {
      const json explained = row(
          {"explain", "--machine", machine, "-p", "128", "-m", "core", "--set", setting, "--json"});
      const json simulated = row({"sim", "barrier", "--machine", machine, "--ranks", "128",
                                  "--algorithms", "auto", "--set", setting, "--json"});
      EXPECT_EQ(explained.at("algorithm"), simulated.at("chosen")) << machine << " " << setting;
      EXPECT_EQ(explained.at("predicted").at(0).at("latency_us"), simulated.at("latency_us"));
      EXPECT_EQ(explained.at("setting").get<std::string>().starts_with("threads"),
                setting[5] == '5');
    }
  }
  const json asked = row({"explain", "--machine", "epyc-7763-2s", "-p", "128", "-m", "core", "-a",
                          "tournament", "--json"});
  EXPECT_EQ(asked.at("predicted").at(1).at("algorithm"), "auto");
  EXPECT_EQ(run_muster({"explain", "--set", "call=5"}).exit_code, 2);
}

TEST(Cli, AFullDiskIsNoSuccess) {
  for (const char* const words : {"list", "completion bash", "--help", "sim --help", "--version"}) {
    const std::string command = std::string(MUSTER_PROGRAM) + " " + words;
    EXPECT_EQ(WEXITSTATUS(std::system((command + " >/dev/full 2>/dev/null").c_str())), 1) << words;
    const std::string said = command + " 2>&1 >/dev/full | grep -q 'written to standard output'";
    EXPECT_EQ(WEXITSTATUS(std::system(said.c_str())), 0) << words;
  }
}

// What nobody can be told ends nothing else; and no file gets a closed stream's number.
TEST(Cli, StreamsThatAreFullOrClosedAreNoMatter) {
  for (const auto& [words, code] :
       {std::pair{"foo 2>/dev/full", 2}, std::pair{"topo --ranks 0 2>&-", 2},
        std::pair{"run -- /nope 2>/dev/full", 127}, std::pair{"--help-all >/dev/full 2>&-", 1},
        std::pair{"list >&- 2>&-", 1}, std::pair{"run --report -- true 2>/dev/full", 0},
        std::pair{"list <&- >/dev/null 2>&-", 0}}) {
    const std::string command = std::string(MUSTER_PROGRAM) + " " + words;
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), code) << words;
  }
}

TEST(List, HasEverythingThatCanBeAskedFor) {
  const Outcome outcome = run_muster({"list", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::set<std::pair<std::string, std::string>> found;
  const json list = json::parse(outcome.out);
  for (const json& entry : list.at("results")) {
    found.emplace(entry.at("kind").get<std::string>(), entry.at("name").get<std::string>());
    if (entry.at("kind") == "algorithm" && entry.at("name") != "auto") {
      for (const char* field : {"champion", "splits", "cost", "source"}) {
        EXPECT_TRUE(entry.contains(field)) << entry;
      }
    }
    if (entry.at("kind") == "lock") {
      for (const char* field : {"executed_by", "fair", "cost", "source"}) {
        EXPECT_TRUE(entry.contains(field)) << entry;
      }
    }
    if (entry.at("kind") == "peer" || entry.at("kind") == "lock peer") {
      EXPECT_TRUE(entry.at("available").is_boolean()) << entry;
      EXPECT_EQ(entry.at("missing").is_null(), entry.at("available").get<bool>()) << entry;
    }
  }
  for (const char* name :
       {"auto", "sense-reversing", "sense-reversing-counter", "sense-reversing-gr",
        "combining-tree", "mcs", "tournament", "dissemination", "topo"}) {
    EXPECT_TRUE(found.count({"algorithm", name}) == 1) << name;
  }
  for (const char* name : {"CORE", "L1", "L2", "L3", "NUMA", "GROUP", "DIE", "PACKAGE"}) {
    EXPECT_TRUE(found.count({"level", name}) == 1) << name;
  }
  EXPECT_TRUE(found.count({"machine", "kunpeng920-2s"}) == 1);
  for (const char* name : {"core", "numa", "socket", "none"}) {
    EXPECT_TRUE(found.count({"mapping", name}) == 1) << name;
  }
  for (const char* name :
       {"auto", "spin", "yield", "sleep", "spin-yield", "spin-yield-sleep", "yield-sleep"}) {
    EXPECT_TRUE(found.count({"wait", name}) == 1) << name;
  }
  for (const char* name : {"pthread_barrier", "std::barrier", "libgomp", "libomp", "ck-centralized",
                           "ck-combining", "ck-dissemination", "ck-mcs", "ck-tournament"}) {
    EXPECT_TRUE(found.count({"peer", name}) == 1) << name;
  }
  for (const char* const* name = muster_message_barrier_names(); *name != nullptr; ++name) {
    EXPECT_TRUE(found.count({"message barrier", *name}) == 1) << *name;
  }
  for (const char* const* name = muster_lock_names(); *name != nullptr; ++name) {
    EXPECT_TRUE(found.count({"lock", *name}) == 1) << *name;
  }
  for (const auto& entry : muster::bench::lock_entries()) {  // what `bench lock --locks` takes
    EXPECT_EQ(found.count({"lock", entry.name}) + found.count({"lock peer", entry.name}) +
                  found.count({"lock reference", entry.name}),
              1U)
        << entry.name;
  }
  EXPECT_EQ(outcome.out.find("test-stuck"), std::string::npos);

  const Outcome text = run_muster({"list"});
  ASSERT_EQ(text.exit_code, 0);
  for (const auto& [kind, name] : found) EXPECT_THAT(text.out, HasSubstr("  " + name)) << kind;
  EXPECT_THAT(text.out, HasSubstr("\nlocks (line transfers a section, contended)\n  cas-spin "));
  EXPECT_THAT(text.out, HasSubstr("executed by a server; first come, first served\n"));
}

/// What a command prints for people, in a terminal of 80 columns.
void expect_narrow(const Words& words) {
  const Outcome outcome = run_muster(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 80U) << words.front() << ": " << line;
}

TEST(Texts, OfEachCommandFitATerminal) {
  const Words bench{"--participants", "2", "--algorithms", "auto"};
  const auto with = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_narrow({"list"});
  expect_narrow({"topo", "--bindings", ""});
  expect_narrow({"place", "--servers", "1", "--threads", "9"});
  expect_narrow({"check", "--participants", "2,4", "--episodes", "2", "--algorithms",
                 "sense-reversing-counter,topo,lock:ticket"});
  expect_narrow({"check", "--mutate", "--algorithms", "dissemination,topo"});
  expect_narrow(with({"bench", "barrier", "--seconds", "0.3", "--peers", "none"}, bench));
  expect_narrow(with(
      {"bench", "barrier", "--regime", "quiet", "--turn", "2", "--rounds", "2", "--peers", "none"},
      bench));
  expect_narrow({"bench", "lock", "--seconds", "0.3", "--locks", "auto", "--threads", "2"});
  if (run_muster({"sim", "--help"}).exit_code != 0) return;  // built without
  for (const char* const machine : {"kunpeng920-2s", "epyc-9654-2s"}) {
    expect_narrow({"sim", "lock", "--machine", machine, "--locks", "all", "--threads", "2,7",
                   "--pattern", "sequential", "--affinity", "hierarchical", "--window", "50",
                   "--warm-up", "50"});
    expect_narrow(
        {"sim", "barrier", "--machine", machine, "--algorithms", "all,auto", "--ranks", "96"});
  }
  expect_narrow({"sim", "lock", "--machine", "oak", "--placements", "all", "--window", "50",
                 "--warm-up", "50", "--threads", "2"});
  expect_narrow({"sim", "validate", "--machine", "kunpeng920-2s", "--measured",
                 std::string(MUSTER_SOURCE_DIR) + "/doc/results/kunpeng-64-measured.csv"});
  expect_narrow({"sim", "reproduce", "--quick"});
}

TEST(Texts, SayOneOfOne) {
  const std::regex wrong(
      "(^|[^0-9.])1 (ranks|participants|others|threads|processes|cores|(usable )?CPUs|PUs|rounds|"
      "words|barriers|groups|units|packages|NUMA nodes)\\b");
  for (const Words& words :
       {Words{"topo", "--topology", "core:1 pu:1"}, Words{"explain", "-p", "1"},
        Words{"bench", "barrier", "--participants", "1", "--seconds", "0.3", "--rounds", "1",
              "--algorithms", "auto", "--peers", "none"},
        Words{"bench", "lock", "--threads", "1", "--array", "1", "--operations", "1", "--rounds",
              "1", "--locks", "mcs", "--pattern", "sequential"}}) {
    const Outcome outcome = run_muster(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::smatch found;
    EXPECT_FALSE(std::regex_search(outcome.out, found, wrong)) << words[0] << ": " << found.str();
  }
}

TEST(Texts, FitATerminal) {
  const std::string machines = MUSTER_SOURCE_DIR "/test/machines/";
  for (const std::string machine : {"kunpeng920-2s.txt", "epyc-2s-32L3.txt", "hybrid-6p8e.xml"}) {
    for (const char* const mapping : {"core", "numa", "socket"}) {
      for (const char* const count : {"3", "14"}) {
        for (const Words& command : {Words{"topo", "--ranks"}, Words{"explain", "-p"}}) {
          Words words = command;
          words.insert(words.end(), {count, "--map-by", mapping, "--topology", machines + machine});
          expect_narrow(words);
        }
      }
    }
  }
}

TEST(Doctor, PrintsWhatItFound) {
  const auto told =
      nlohmann::json::parse(run_muster_for_json({"doctor", "--only", "membarrier,cpus"}));
  EXPECT_EQ(told.at("schema"), 1);
  ASSERT_EQ(told.at("findings").size(), 2U);
  EXPECT_EQ(told.at("findings").at(0).at("check"), "cpus");
  EXPECT_EQ(told.at("findings").at(0).at("measured").count("usable_cpus"), 1U);
}

TEST(Doctor, StrictFailsWhereSomethingCosts) {
  const std::map<std::string, std::string> imposed{{"MUSTER_TOPOLOGY", "package:2 core:4 pu:1"}};
  const Words words{"doctor", "--only", "topology"};
  EXPECT_EQ(run_muster(words, imposed).exit_code, 0);
  const Outcome strict = run_muster({"doctor", "--only", "topology", "--strict"}, imposed);
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_NE(strict.out.find("1 of these costs."), std::string::npos) << strict.out;
}

TEST(Compare, JudgesFiles) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "compare";
  const std::string file = folder / "barrier.json";
  Outcome same;
  for (const char* const seconds : {"3", "15", "90"}) {  // some end no episode on a busy machine
    ASSERT_EQ(run_muster({"bench", "barrier", "--participants", "2", "--mode", "threads",
                          "--algorithms", "auto", "--seconds", seconds, "--output", folder})
                  .exit_code,
              0);
    same = run_muster({"compare", file, file, "--fail-if", "slower:1%"});
    if (same.err.find("are in all runs") == std::string::npos) break;
  }
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_NE(same.out.find("no more than chance"), std::string::npos) << same.out;
  std::filesystem::remove_all(folder);
}

TEST(Help, FitsATerminal) { expect_narrow({"--help-all"}); }

TEST(Help, BreaksNoLineThatHasRoom) {
  for (const Words& words : {Words{"bench", "mpi"}, {"bench", "lock"}, {"measure"}, {"check"}}) {
    Words command = words;
    command.emplace_back("--help");
    std::istringstream lines(run_muster(command).out);
    std::string before;
    for (std::string line; std::getline(lines, line); before = line) {
      const bool goes_on = !before.empty() && before[0] != ' ' && isalnum(before.back()) != 0;
      if (!goes_on || line.empty() || line[0] == ' ' || line.starts_with("Usage:")) continue;
      EXPECT_GT(before.size() + 1 + line.find_first_of(" \n"), 79U) << before << "\n" << line;
    }
  }
}

}  // namespace
