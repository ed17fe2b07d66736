// SPDX-License-Identifier: BSD-3-Clause
// `muster machine`, and `--machine`, as people use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "command.hpp"

namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Of two packages whose CPUs are so far apart in the numbers; `near` is inside one.
std::string matrix_of(unsigned cpus, unsigned stride, const char* near = "40,",
                      const char* far = "120,") {
  std::string text;
  for (unsigned a = 0; a < cpus; ++a) {
    for (unsigned b = 0; b < a; ++b) text += a / stride % 2 == b / stride % 2 ? near : far;
    text += "\n";
  }
  return text;
}

class MachineCommand : public CommandTest {
 protected:
  /// `matrix` of a machine of two packages of four, and what else is asked for.
  Outcome import(const std::string& matrix, const Words& more) {
    write(folder_ / "m.csv", matrix);
    Words words{"machine", "import", "--latencies", (folder_ / "m.csv").string(),
                "--name",  "eight"};
    words.insert(words.end(), more.begin(), more.end());
    return run_muster(words);
  }
  const Words packages_ = {"--topology", "package:2 core:4 pu:1", "--like", "epyc-7763-2s"};
  Words packages_and(const Words& more) const {
    Words words = packages_;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(MachineCommand, MeasureJudgesItsClosure) {
  const std::string machine = (folder_ / "here.machine").string();
  const auto measure = [&](const Words& more) {
    Words words{"machine", "measure", "--rounds", "2", "--cores-max", "2", "--name", "here"};
    words.insert(words.end(), more.begin(), more.end());
    return run_muster_when_steady(words);
  };
  const Outcome outcome = measure({"--json", "--output", machine});
  if (outcome.exit_code != 0) {
    for (const char* reason : {"one core only", "changed its speed", "nest regularly"}) {
      if (outcome.err.find(reason) != std::string::npos) GTEST_SKIP() << outcome.err;
    }
  }
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("machine"), "here");
  EXPECT_EQ(result.at("description"), read(machine));
  for (const json& row : result.at("results")) {
    const double error =
        row.at("modelled_ns").get<double>() / row.at("measured_ns").get<double>() - 1;
    EXPECT_NEAR(row.at("error").get<double>(), error, 1e-9);
  }
  // How a kind is judged: Closure, in import_test.cpp.
  bool closes = true;
  std::vector<std::string> kinds;
  for (const json& kind : result.at("kinds")) {
    kinds.push_back(kind.at("kind"));
    EXPECT_EQ(kind.at("holds"), kind.at("good") == kind.at("all")) << kind;
    EXPECT_EQ(kind.at("prediction"), kinds.back() == "barriers");
    EXPECT_EQ(kind.at("tolerance"), kind.at("prediction") ? 0.25 : 0.15);
    closes = closes && (kind.at("prediction") || kind.at("holds"));
  }
  EXPECT_EQ(result.at("closes"), closes);
  EXPECT_THAT(kinds, testing::UnorderedElementsAre("alone", "ping-pong", "one-writer", "one-reader",
                                                   "many-stores", "one-counter", "barriers"));
  // It can be modelled, and in words there are verdicts too.
  EXPECT_THAT(muster({"sim", "barrier", "--machine", machine, "--ranks", "2", "--algorithms", "mcs",
                      "--csv"}),
              HasSubstr("mcs,here,2,core,"));
  const Outcome text = measure({"--no-barriers"});
  if (text.err.find("changed its speed") != std::string::npos) GTEST_SKIP() << text.err;
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, testing::ContainsRegex("\nping-pong    (closes|does not close) "));
  // Each row in one line of a terminal.
  EXPECT_THAT(text.out, testing::ContainsRegex("\na flag's round trip, cores 0 and 1 .* %\n"));
  EXPECT_EQ(text.out.find("does not close ") != std::string::npos,
            text.out.find("This description does not close") != std::string::npos);
  EXPECT_EQ(text.out.find("barriers"), std::string::npos);
}

TEST_F(MachineCommand, ImportMakesAMachineThatRuns) {
  const std::string machine = (folder_ / "m.machine").string();
  const Outcome outcome = import(matrix_of(8, 4), {"--topology", "package:2 core:4 pu:1",
                                                   "--source", "a test", "--output", machine});
  EXPECT_THAT(outcome.out, StartsWith(read(machine)));
  EXPECT_THAT(outcome.out, HasSubstr("PACKAGE 40.0 ns MACHINE 120.0 ns"));
  EXPECT_THAT(outcome.err, HasSubstr("all but topology and latencies is kunpeng920-2s's"));
  EXPECT_THAT(read(machine), HasSubstr("measured: median of 12 pairs, a test"));
  EXPECT_THAT(read(machine), HasSubstr("measured: median of 16 pairs, a test"));
  EXPECT_THAT(read(machine), HasSubstr("| assumed: --rmw, or its default"));
  EXPECT_THAT(muster({"sim", "barrier", "--machine", machine, "--algorithms", "mcs", "--csv"}),
              HasSubstr("mcs,eight,8,core,"));
}

TEST_F(MachineCommand, ImportWarnsWhereTheTopologyExplainsLittle) {
  const auto with_stride = [&](unsigned stride) {
    Outcome outcome = import(matrix_of(8, stride), packages_);
    EXPECT_EQ(outcome.exit_code, 0);
    return outcome;
  };
  EXPECT_EQ(with_stride(4).err, "");
  EXPECT_THAT(with_stride(4).out, Not(HasSubstr("Rows are taken")));
  EXPECT_EQ(with_stride(1).err, "");
  EXPECT_THAT(with_stride(1).out, HasSubstr("Rows are taken for CPUs with packages by turns"));
  const std::string little = with_stride(2).err;
  EXPECT_THAT(little, HasSubstr("that is little. Are the CPUs numbered as --cpus says"));
  EXPECT_THAT(little, HasSubstr("are not of one distance: 10 to 90 % are 40.0 to 120.0 ns apart"));
}

TEST_F(MachineCommand, ASourceIsOneLine) {
  const std::string machine = (folder_ / "m.machine").string();
  for (const char* source : {"a\nname b", "a\n# b", "A | B # c"}) {
    const Outcome outcome =
        import(matrix_of(8, 4), packages_and({"--source", source, "--output", machine}));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("cannot stand in a machine file")) << source;
    EXPECT_EQ(outcome.out, "") << source;
  }
  EXPECT_FALSE(std::filesystem::exists(machine));
}

/// As `muster measure` takes them, but in the order of the rows.
TEST_F(MachineCommand, CpusMayBeRanges) {
  const auto with = [&](const char* cpus) {
    return import(matrix_of(8, 1), packages_and({"--cpus", cpus}));
  };
  EXPECT_THAT(with("0,4,1,5,2,6,3,7").out, HasSubstr("they explain 100 %"));
  EXPECT_EQ(with("0-7:4,1-5:4,2,6,3-7:4").out, with("0,4,1,5,2,6,3,7").out);
  EXPECT_THAT(with("0-7").out, HasSubstr("they explain 0 %"));
  EXPECT_THAT(with("0-7,3").err, HasSubstr("the matrix has 8 CPUs, the topology or --cpus 9"));
  EXPECT_THAT(with("0-x").err, HasSubstr("PU list '0-x'"));
  EXPECT_THAT(with("none").err, HasSubstr("\"none\" names no CPU"));
}

TEST_F(MachineCommand, AMachineAndItsTopologyMoveTogether) {
  namespace fs = std::filesystem;
  fs::create_directories(folder_ / "here/below");
  fs::copy_file(fs::path(MUSTER_SOURCE_DIR) / "test/machines/hybrid-6p8e.xml",
                folder_ / "here/below/t.xml");
  const std::string xml = (folder_ / "here/below/t.xml").string();
  const auto to = [&](const char* machine) {
    const Outcome outcome =
        import(matrix_of(20, 20), {"--topology", xml, "--output", (folder_ / machine).string()});
    EXPECT_THAT(outcome.out, StartsWith(read(folder_ / machine)));
    return read(folder_ / machine);
  };
  EXPECT_THAT(to("here/m.machine"), HasSubstr("\ntopology file below/t.xml "));
  const fs::path before = fs::current_path();
  fs::current_path(folder_ / "here");
  static_cast<void>(import(matrix_of(20, 20), {"--topology", xml, "--output", "new.machine"}));
  fs::current_path(before);
  EXPECT_THAT(read(folder_ / "here/new.machine"), HasSubstr("\ntopology file below/t.xml "));
  fs::create_directories(folder_ / "there");
  EXPECT_THAT(to("there/m.machine"), HasSubstr("\ntopology file " + xml + " "));
  fs::rename(folder_ / "here", folder_ / "moved");
  EXPECT_THAT(muster({"sim", "barrier", "--machine", (folder_ / "moved/m.machine").string(),
                      "--algorithms", "mcs", "--csv"}),
              HasSubstr("mcs,eight,14,core,"));
}

/// A typo, most likely: 10 for 124.
TEST_F(MachineCommand, WhatIsNearerOutsideIsTold) {
  const std::string nearer = "pairs of MACHINE, 40 ns, are nearer than those of PACKAGE, 120 ns";
  EXPECT_THAT(import(matrix_of(8, 4, "120,", "40,"), packages_and({"--cpus", "0-7"})).err,
              HasSubstr(nearer));
  const std::string machine = (folder_ / "m.machine").string();
  const Outcome good = import(matrix_of(8, 4), packages_and({"--output", machine}));
  EXPECT_THAT(good.err, Not(HasSubstr("nearer")));
  std::string text = read(machine);
  text.replace(text.find("PACKAGE 40 ns"), 13, "PACKAGE 120 ns");
  text.replace(text.find("MACHINE 120 ns"), 14, "MACHINE 40 ns");
  write(machine, text);
  const Outcome read_back =
      run_muster({"sim", "barrier", "--machine", machine, "--algorithms", "mcs"});
  EXPECT_EQ(read_back.exit_code, 0);
  EXPECT_THAT(read_back.err, HasSubstr(nearer));
}

TEST_F(MachineCommand, NothingIsWrittenThatCouldNotBeRead) {
  write(folder_ / "m.csv", ",\n1e7,\n");
  const std::string machine = (folder_ / "m.machine").string();
  const auto import = [&](const std::string& name, const std::string& output) {
    return run_muster({"machine", "import", "--latencies", (folder_ / "m.csv").string(),
                       "--topology", "core:2 pu:1", "--name", name, "--output", output});
  };
  EXPECT_EQ(import("two words", machine).exit_code, 2);
  const Outcome far = import("far", machine);  // no machine is that large
  EXPECT_EQ(far.exit_code, 2);
  EXPECT_THAT(far.err, HasSubstr("m.machine:7: 1e+07 is not within"));
  EXPECT_FALSE(std::filesystem::exists(machine));
  const Outcome nowhere = import("two", (folder_ / "no/m.machine").string());
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("no/m.machine cannot be written: No such file"));
  EXPECT_EQ(nowhere.out, "");  // before anything else
}

TEST_F(MachineCommand, AutoIsWhatExplainSaysItIs) {
  const Words team = {"--machine", "epyc-7763-2s", "--map-by", "numa"};
  for (const char* ranks : {"2", "8", "48"}) {
    Words words = {"sim", "barrier", "--ranks", ranks, "--algorithms", "auto"};
    words.insert(words.end(), team.begin(), team.end());
    const std::string text = muster(words);
    words.emplace_back("--json");
    json row = json::parse(muster(words)).at("results").at(0);
    Words explain = {"explain", "--participants", ranks, "--json"};
    explain.insert(explain.end(), team.begin(), team.end());
    const json chosen = json::parse(muster(explain)).at("results").at(0);
    EXPECT_EQ(row.at("algorithm"), "auto");
    EXPECT_EQ(row.at("chosen"), chosen.at("algorithm"));
    EXPECT_THAT(text, HasSubstr("auto: " + row.at("chosen").get<std::string>()));
    // It takes as long as that barrier, asked for by name.
    row["algorithm"] = row.at("chosen");
    row.erase("chosen");
    EXPECT_EQ(row, chosen.at("predicted").at(0));
  }
}

TEST_F(MachineCommand, WhatIsSetHoldsInTheWholeInterval) {
  const auto row = [](Words words) {
    words.insert(words.end(), {"--machine", "kunpeng920-2s", "--set", "call=50000", "--json"});
    return json::parse(muster(words)).at("results").at(0);
  };
  EXPECT_GT(row({"sim", "barrier", "--ranks", "8", "--algorithms", "mcs"}).at("latency_us_low"),
            40);
  const json explained = row({"explain", "--participants", "8", "--map-by", "core"});
  EXPECT_FALSE(explained.at("predicted").empty());
  for (const json& each : explained.at("predicted")) EXPECT_GT(each.at("latency_us_low"), 40);
}

// Nine settings, of which the machine itself is the first: among two locks one is the fastest in
// each.
TEST_F(MachineCommand, LocksHaveIntervalsAndWinInSomeSettings) {
  const Words words{"sim",       "lock",      "--machine",  "kunpeng920-2s", "--locks",
                    "rcl,auto",  "--pattern", "sequential", "--threads",     "4,12",
                    "--warm-up", "1000",      "--window",   "2000",          "--json"};
  const auto with = [&](const Words& more) {
    Words all = words;
    all.insert(all.end(), more.begin(), more.end());
    return json::parse(muster(all)).at("results");
  };
  const json alone = with({});
  const json rows = with({"--members", "8"});
  ASSERT_EQ(rows.size(), 4U);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    EXPECT_FALSE(alone[n].contains("fastest_in"));
    const double ops_s = rows[n].at("throughput_ops_s");
    EXPECT_EQ(ops_s, alone[n].at("throughput_ops_s"));
    EXPECT_LE(rows[n].at("throughput_ops_s_low"), ops_s);
    EXPECT_GE(rows[n].at("throughput_ops_s_high"), ops_s);
    EXPECT_LT(rows[n].at("throughput_ops_s_low"), rows[n].at("throughput_ops_s_high"));
  }
  for (const std::size_t few : {0U, 1U}) {  // of threads: rcl's row, and two behind it auto's
    const unsigned rcl = rows[few].at("fastest_in");
    EXPECT_EQ(rcl + rows[few + 2].at("fastest_in").get<unsigned>(), 9U);
  }
  Words text = words;
  text.back() = "--members";
  text.emplace_back("2");
  EXPECT_THAT(muster(text), HasSubstr("fastest in"));
}

TEST_F(MachineCommand, APredictionSaysHowItWasMade) {
  const auto with = [&](Words words, const Words& more) {
    words.insert(words.end(), {"--machine", "oak", "--set", "hit=2,call=7", "--without", "ll-sc"});
    words.insert(words.end(), more.begin(), more.end());
    return muster(words);
  };
  const Words barrier{"sim", "barrier", "--algorithms", "auto,mcs", "--members", "0"};
  const Words lock{"sim",       "lock", "--locks",  "mcs", "--pattern", "random",
                   "--threads", "2",    "--window", "500", "--warm-up", "200"};
  const json common = {{"version", muster({"--version"}).substr(std::string("muster ").size())},
                       {"machine", "oak"},
                       {"set", {"hit=2", "call=7"}},
                       {"without", {"ll-sc"}}};
  const auto settings = [&](const Words& words) {
    json of = json::parse(with(words, {"--json"})).at("settings");
    of["version"] = of.at("version").get<std::string>() + "\n";
    return of;
  };
  json expected = common;
  expected.update({{"members", 0}, {"seeds", 1}, {"first_seed", 1}, {"warm_up", 8}});
  expected["window"] = 20;
  EXPECT_EQ(settings(barrier), expected);
  expected["members"] = 8;
  EXPECT_EQ(settings({"explain", "--participants", "4", "--map-by", "core"}), expected);
  expected = common;
  expected.update({{"seed", 1}, {"warm_up", 200}, {"window", 500}, {"members", 0}});
  EXPECT_EQ(settings(lock), expected);
  for (const Words& words : {barrier, lock}) {
    EXPECT_THAT(with(words, {}), HasSubstr("changed: --set hit=2,call=7"));
  }
  const std::string chosen =
      json::parse(with(barrier, {"--json"})).at("results").at(0).at("chosen").get<std::string>();
  const std::string csv = with(barrier, {"--csv"});
  EXPECT_THAT(csv, HasSubstr("true," + chosen + "\nmcs,oak,"));
  EXPECT_THAT(csv, testing::EndsWith(",true,\n"));
  for (const Words& words : {barrier, lock}) with(words, {"--output", folder_.string()});
  muster({"report", folder_.string()});
  const std::string report = read(folder_ / "report.html");
  EXPECT_THAT(report, HasSubstr("muster sim barrier --machine oak --set hit=2,call=7 --without "
                                "ll-sc --members 0 --seeds 1 --algorithms auto,mcs"));
  EXPECT_THAT(report, HasSubstr("--without ll-sc --seed 1 --warm-up 200 --locks mcs"));
}

TEST_F(MachineCommand, BarrierSaysForWhomAsExplainDoes) {
  const auto flat = [](const std::string& text) {  // wherever its lines end
    return std::regex_replace(text, std::regex(R"(\s+)"), " ");
  };
  for (const char* set : {"call=250", "call=5,poll-turn=10"}) {
    const Words of{"--machine", "kunpeng920-2s", "--set", set};
    Words explain{"explain", "--json"};
    explain.insert(explain.end(), of.begin(), of.end());
    const std::string setting = json::parse(muster(explain)).at("results").at(0).at("setting");
    Words barrier{"sim", "barrier", "--algorithms", "mcs", "--ranks", "2", "--members", "0"};
    barrier.insert(barrier.end(), of.begin(), of.end());
    EXPECT_THAT(flat(muster(barrier)), HasSubstr(" For " + setting + " "));
  }
}

TEST_F(MachineCommand, NamesWhatIsNotToldApartFromTheFastest) {
  Words words{"sim",   "barrier",  "--machine", "kunpeng920-2s", "--ranks",
              "8,128", "--map-by", "numa",      "--members",     "0"};
  const std::string text = muster(words);
  words.emplace_back("--json");
  std::map<unsigned, std::map<double, std::set<std::string>>> teams;
  const json result = json::parse(muster(words));
  for (const json& row : result.at("results"))
    teams[row.at("ranks")][row.at("latency_us")].insert(row.at("algorithm"));
  std::vector<std::set<std::string>> expected;
  for (const auto& [ranks, by_us] : teams) {
    std::set<std::string> as_fast;
    for (const auto& [us, names] : by_us) {
      const double ratio = us / by_us.begin()->first;
      if (ratio > 1 && ratio <= 1.15) as_fast.insert(names.begin(), names.end());
    }
    if (!as_fast.empty()) expected.push_back(as_fast);
  }
  EXPECT_FALSE(expected.empty());
  const std::regex line(R"(Not told apart from the fastest: ((.|\n  )*)\n)");
  std::vector<std::set<std::string>> said;
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) {
    std::istringstream names((*at)[1].str());
    said.emplace_back();
    for (std::string name; std::getline(names >> std::ws, name, ',');) said.back().insert(name);
  }
  EXPECT_EQ(said, expected);
}

TEST_F(MachineCommand, ALockWithoutAServerHasEveryCore) {
  const auto of = [](const Words& more) {
    Words words{"sim", "lock",     "--machine", "oak",       "--pattern", "random",  "--threads",
                "8",   "--window", "500",       "--warm-up", "200",       "--locks", "mcs,auto"};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(muster(words)).at("results");
  };
  for (const Words& more : {Words{"--json"}, Words{"--json", "--placements", "all"},
                            Words{"--json", "--affinity", "none", "--allocator", "0"},
                            Words{"--json", "--affinity", "hierarchical"}}) {
    const json rows = of(more);
    ASSERT_EQ(rows.size(), 2U) << more.back();
    for (const json& row : rows) {
      EXPECT_EQ(row.at("share"), 1);
      EXPECT_TRUE(row.at("placement") == "wwwwm|wwww" || row.at("placement") == "mean of all");
    }
  }
  // Before any run, which the window would make last for hours.
  const Outcome more = run_muster({"sim", "lock", "--machine", "oak", "--locks", "rcl,mcs",
                                   "--threads", "8,9", "--window", "100000000"});
  EXPECT_EQ(more.exit_code, 2);
  EXPECT_EQ(more.out, "");
  EXPECT_THAT(more.err, HasSubstr("mcs with 9 threads on 8 cores"));
}

TEST_F(MachineCommand, AnAllocatorOfWhichAPlacementSaysNothingIsRefused) {
  const Words lock{"sim", "lock", "--machine", "oak", "--allocator", "7"};
  for (const Words& more : {Words{}, Words{"--affinity", "none", "--placements", "all"}}) {
    Words words = lock;
    words.insert(words.end(), more.begin(), more.end());
    expect_refused({{words, "the placement says where the array is"}});
  }
}

TEST_F(MachineCommand, TheHelpOfLocksNamesTheMutexes) {
  const std::string help = muster({"sim", "lock", "--help"});
  for (const char* name : {"pthread", "spin-then-park", "mcs", "cna"}) {
    EXPECT_THAT(help, HasSubstr(std::string("mutex-") + name));
  }
}

TEST_F(MachineCommand, MistakesInMachinesSayWhatToDo) {
  const std::string empty = (folder_ / "empty").string();
  write(empty, "");
  const std::string nowhere = (folder_ / "none").string();
  expect_refused(
      {{{"sim", "barrier", "--machine", nowhere}, "machine file '" + nowhere},
       {{"sim", "barrier", "--machine", empty}, "machine file '" + empty + "' is empty"}});
  for (const char* set : {"store-entries=1.5", "private-ways=2.5", "owner-hold=0.5",
                          "cache-line=16.5", "home-way=0.5", "poll-ways=1.5", "shared-ways=1.5"}) {
    expect_refused({{{"sim", "barrier", "--machine", "oak", "--set", set}, "is a whole number"}});
  }
  for (const char* set : {"call=1e999", "call=1e-999", "call=", "call"}) {
    expect_refused({{{"sim", "barrier", "--machine", "oak", "--set", set}, "is no NAME=NUMBER"}});
  }
  const std::string marked = (folder_ / "marked").string();
  write(marked, "\xEF\xBB\xBF" +
                    read(std::filesystem::path(MUSTER_SOURCE_DIR) / "sim/machines/oak.machine"));
  EXPECT_THAT(muster({"sim", "barrier", "--machine", marked, "--algorithms", "mcs", "--csv"}),
              HasSubstr("mcs,oak,8,core,"));
  const Outcome large = run_muster_within(
      std::size_t{1} << 30, {"sim", "lock", "--machine", "oak", "--set", "shared-cache=1e7"});
  EXPECT_EQ(large.exit_code, 1);
  EXPECT_THAT(large.err, HasSubstr("private-cache or shared-cache"));
}

TEST_F(MachineCommand, AMachineMayBeATopologyAlone) {
  const std::filesystem::path machines = std::filesystem::path(MUSTER_SOURCE_DIR) / "test/machines";
  std::vector<std::string> names = {"package:2 numa:2 core:4 pu:1", "core:4 pu:1"};
  for (const auto& file : std::filesystem::directory_iterator(machines)) {
    if (file.path().extension() == ".xml") names.push_back(file.path().string());
  }
  for (const std::string& name : names) {
    const std::string text = muster(
        {"sim", "barrier", "--machine", name, "--algorithms", "auto,mcs", "--map-by", "socket"});
    EXPECT_THAT(text, HasSubstr("assumed: ")) << name;
    EXPECT_THAT(text, HasSubstr("* ")) << name;
  }
}

}  // namespace
