// SPDX-License-Identifier: BSD-3-Clause
// `muster machine`, and `--machine`, as people use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.hpp"

namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using MachineCommand = CommandTest;

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
  std::string matrix;
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < a; ++b) matrix += a / 4 == b / 4 ? "40," : "120,";
    matrix += "\n";
  }
  const std::string latencies = (folder_ / "m.csv").string();
  const std::string machine = (folder_ / "m.machine").string();
  write(latencies, matrix);
  const std::string said =
      muster({"machine", "import", "--latencies", latencies, "--topology", "package:2 core:4 pu:1",
              "--name", "eight", "--source", "a test", "--output", machine});
  EXPECT_THAT(said, StartsWith(read(machine)));
  EXPECT_THAT(said, HasSubstr("PACKAGE 40.0 ns MACHINE 120.0 ns"));
  EXPECT_THAT(read(machine), HasSubstr("measured: class median of 28 pairs, a test"));
  EXPECT_THAT(muster({"sim", "barrier", "--machine", machine, "--algorithms", "mcs", "--csv"}),
              HasSubstr("mcs,eight,8,core,"));
}

TEST_F(MachineCommand, ImportWarnsWhereTheTopologyExplainsLittle) {
  const auto import = [&](unsigned stride) {  // CPUs of a package are so far apart in the numbers
    std::string matrix;
    for (unsigned a = 0; a < 8; ++a) {
      for (unsigned b = 0; b < a; ++b) matrix += a / stride % 2 == b / stride % 2 ? "40," : "120,";
      matrix += "\n";
    }
    write(folder_ / "m.csv", matrix);
    Outcome outcome = run_muster({"machine", "import", "--latencies", (folder_ / "m.csv").string(),
                                  "--topology", "package:2 core:4 pu:1", "--name", "eight"});
    EXPECT_EQ(outcome.exit_code, 0);
    return outcome;
  };
  EXPECT_EQ(import(4).err, "");
  EXPECT_THAT(import(4).out, Not(HasSubstr("Rows are taken")));
  EXPECT_EQ(import(1).err, "");
  EXPECT_THAT(import(1).out, HasSubstr("Rows are taken for CPUs with packages by turns"));
  EXPECT_THAT(import(2).err, HasSubstr("that is little. Are the CPUs numbered as --cpus says"));
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
