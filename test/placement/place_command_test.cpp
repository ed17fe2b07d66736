// SPDX-License-Identifier: BSD-3-Clause
// `muster place` as a user calls it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "command.hpp"

namespace {

const std::string oak = MUSTER_SOURCE_DIR "/test/machines/oak.txt";

TEST(PlaceCommand, TextSaysWhereAndWhatMemoryDoes) {
  const std::string text =
      muster({"place", "--topology", oak, "--servers", "2", "--policy", "spread"});
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

TEST(PlaceCommand, TextOfANamedMachineFitsATerminal) {
  for (const char* policy : {"pack", "spread"}) {
    const std::string text =
        muster({"place", "--machine", "kunpeng920-2s", "--servers", "9", "--policy", policy});
    EXPECT_EQ(text.find("kunpeng920-2s: 128 cores\ntree "), 0U) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(PlaceCommand, Json) {
  const auto json = nlohmann::json::parse(
      muster({"place", "--topology", oak, "--at", "5", "--threads", "4", "--json"}));
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

TEST(PlaceCommand, RefusesCoresThatAreNotThere) {
  for (const char* cores : {"8", "1,2"}) {
    EXPECT_EQ(run_muster({"place", "--topology", oak, "--at", cores}).exit_code, 2) << cores;
  }
}

}  // namespace
