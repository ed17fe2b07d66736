// SPDX-License-Identifier: BSD-3-Clause
// `muster topo` as a user calls it. What it refuses: test/cli/cli_test.cpp.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.hpp"

namespace {

using nlohmann::json;

const char* const kunpeng = "package:2 numa:2 l3:1 l2:32 core:1 pu:1";
const std::string machines = MUSTER_SOURCE_DIR "/test/machines/";

std::string topo(Words words) {
  words.insert(words.begin(), "topo");
  return muster(words);
}

json topo_json(const Words& words) {
  Words all = words;
  all.emplace_back("--json");
  return json::parse(topo(all));
}

TEST(TopoCommand, JsonHasLevelsAndGroupsBottomUp) {
  const json found = topo_json({"--topology", kunpeng, "--ranks", "14", "--map-by", "numa"});
  EXPECT_EQ(found["participants"], 14);
  ASSERT_EQ(found["levels"].size(), 2U);
  EXPECT_EQ(found["levels"][0]["name"], "NUMA");
  EXPECT_EQ(found["levels"][0]["units"], 4);
  EXPECT_EQ(found["levels"][0]["cores_per_unit"], 32);
  EXPECT_EQ(found["levels"][1]["name"], "PACKAGE");
  EXPECT_EQ(found["levels"][1]["cores_per_unit_min"], 64);
  ASSERT_EQ(found["groups"].size(), 7U);
  EXPECT_EQ(found["groups"][2]["level"], "NUMA");
  EXPECT_EQ(found["groups"][2]["members"], (std::vector<unsigned>{2, 6, 10}));
  EXPECT_EQ(found["groups"][2]["leader"], 2);
  EXPECT_EQ(found["groups"][6]["level"], "MACHINE");
  EXPECT_EQ(found["groups"][6]["members"], (std::vector<unsigned>{0, 2}));
  ASSERT_EQ(found["results"].size(), 14U);
  EXPECT_EQ(found["results"][1]["pus"], "32");
  EXPECT_EQ(found["results"][1]["units"]["NUMA"], 1);
  EXPECT_EQ(found["results"][0]["leads"].size(), 3U);
  EXPECT_FALSE(found.contains("declined"));
}

TEST(TopoCommand, AMachineIsNamedOrDescribedInAFile) {
  const std::string file = MUSTER_SOURCE_DIR "/sim/machines/kunpeng920-2s.machine";
  for (const std::string& machine : {std::string("kunpeng920-2s"), file}) {
    const json found = topo_json({"--machine", machine});
    EXPECT_EQ(found["machine"], "kunpeng920-2s");
    EXPECT_EQ(found["participants"], 128);
  }
  EXPECT_EQ(topo_json({"--machine", machines + "hybrid-6p8e.xml"})["participants"], 14);
  EXPECT_EQ(topo({"--machine", "oak"}).find("oak: 2 packages"), 0U);
}

TEST(TopoCommand, BindingsAndDeclining) {
  const json lifted = topo_json({"--topology", kunpeng, "--bindings", "0-40", "1", "CR2:HT2"});
  EXPECT_EQ(lifted["groups"][0]["members"], (std::vector<unsigned>{1, 2}));
  EXPECT_TRUE(lifted["results"][0]["units"]["NUMA"].is_null());
  const json declined = topo_json({"--topology", kunpeng, "--bindings", "0", "none"});
  EXPECT_TRUE(declined["groups"].empty());
  EXPECT_NE(declined["declined"].get<std::string>().find("rank 1"), std::string::npos);
}

TEST(TopoCommand, TextShowsTheTree) {
  const std::string text = topo({"--topology", kunpeng, "--levels", "numa"});
  EXPECT_NE(text.find("NUMA     4 units of 32 cores"), std::string::npos) << text;
  EXPECT_NE(text.find("MACHINE  leader 0  members 0,32,64,96"), std::string::npos) << text;
}

TEST(TopoCommand, DrawsAPictureIntoAFileOrAPipe) {
  const std::string path = ::testing::TempDir() + "muster-topo-command.svg";
  topo({"--topology", kunpeng, "--svg", path});
  const std::string piped = topo({"--topology", kunpeng, "--svg", "-"});
  EXPECT_EQ(read(path), piped);
  std::filesystem::remove(path);
  EXPECT_EQ(piped.find("<?xml"), 0U) << piped.substr(0, 80);
  EXPECT_EQ(piped.find("</svg>"), piped.size() - 7);
  EXPECT_FALSE(std::filesystem::exists("-"));
}

TEST(TopoCommand, OptionsExcludeEachOther) {
  for (const Words& words : {Words{"--topology", kunpeng, "--ranks", "2", "--bindings", "1"},
                             Words{"--topology", kunpeng, "--svg", "-", "--json"},
                             Words{"--map-by", "core", "--bindings", "0"}}) {
    Words all = words;
    all.insert(all.begin(), "topo");
    EXPECT_EQ(run_muster(all).exit_code, 2) << words.back();
  }
  EXPECT_EQ(run_muster({"topo", "--ranks", "65537"}).exit_code, 2);  // no barrier has so many
}

}  // namespace
