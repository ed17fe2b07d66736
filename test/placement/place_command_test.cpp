// SPDX-License-Identifier: BSD-3-Clause
// `muster place` as a user calls it.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"

namespace muster {

namespace {

std::string run(std::vector<std::string> arguments) {
  CLI::App app;
  Command root(&app);
  add_place(root);
  std::reverse(arguments.begin(), arguments.end());
  arguments.emplace_back("place");
  ::testing::internal::CaptureStdout();
  try {
    app.parse(std::move(arguments));
  } catch (...) {
    ::testing::internal::GetCapturedStdout();
    throw;
  }
  return ::testing::internal::GetCapturedStdout();
}

const char* const kOak = MUSTER_TEST_MACHINES "/oak.txt";

TEST(PlaceCommand, TextSaysWhereAndWhatMemoryDoes) {
  const std::string text = run({"--topology", kOak, "--servers", "2", "--policy", "spread"});
  EXPECT_NE(text.find("tree MACHINE > NUMA"), std::string::npos) << text;
  EXPECT_NE(text.find("server 0    core 0    PU 0      NUMA node 0\n"
                      "            memory bound to NUMA node 0, earlier blocks migrate there\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("NUMA node 1\n            memory no longer bound\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("thread 5 "), std::string::npos) << text;
  EXPECT_EQ(text.find("thread 6 "), std::string::npos) << text;
}

TEST(PlaceCommand, TextFitsATerminal) {
  for (const char* policy : {"pack", "spread"}) {
    std::istringstream lines(
        run({"--machine", "kunpeng920-2s", "--servers", "9", "--policy", policy}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(PlaceCommand, Json) {
  const auto json =
      nlohmann::json::parse(run({"--topology", kOak, "--at", "5", "--threads", "4", "--json"}));
  EXPECT_EQ(json["cores"], 8);
  ASSERT_EQ(json["servers"].size(), 1U);
  EXPECT_EQ(json["servers"][0]["core"], 5);
  EXPECT_EQ(json["servers"][0]["memory"], "bind");
  EXPECT_EQ(json["servers"][0]["migrate"], true);
  ASSERT_EQ(json["threads"].size(), 4U);
  EXPECT_EQ(json["threads"][0]["core"], 4);
  EXPECT_EQ(json["threads"][3]["core"], 0);
  EXPECT_EQ(json["threads"][3]["numa"], 0);
}

TEST(PlaceCommand, AMachineMayBeNamed) {
  const std::string text = run({"--machine", "kunpeng920-2s", "--threads", "1"});
  EXPECT_EQ(text.find("kunpeng920-2s: 128 cores\ntree "), 0U) << text;
}

TEST(PlaceCommand, RefusesWhatIsNotThere) {
  EXPECT_THROW(run({"--topology", kOak, "--at", "8"}), Error);
  EXPECT_THROW(run({"--topology", kOak, "--at", "1,2"}), Error);
  EXPECT_THROW(run({"--topology", kOak, "--policy", "heap"}), Error);
}

}  // namespace

}  // namespace muster
