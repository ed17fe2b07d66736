// SPDX-License-Identifier: BSD-3-Clause
// `muster topo` as a user calls it.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
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
  add_topo(root);
  std::reverse(arguments.begin(), arguments.end());
  arguments.emplace_back("topo");
  ::testing::internal::CaptureStdout();
  try {
    app.parse(std::move(arguments));
  } catch (...) {
    ::testing::internal::GetCapturedStdout();
    throw;
  }
  return ::testing::internal::GetCapturedStdout();
}

const char* const kKunpeng = "package:2 numa:2 l3:1 l2:32 core:1 pu:1";

TEST(TopoCommand, JsonHasLevelsAndGroupsBottomUp) {
  const auto json = nlohmann::json::parse(
      run({"--topology", kKunpeng, "--ranks", "14", "--map-by", "numa", "--json"}));
  EXPECT_EQ(json["participants"], 14);
  ASSERT_EQ(json["levels"].size(), 2U);
  EXPECT_EQ(json["levels"][0]["name"], "NUMA");
  EXPECT_EQ(json["levels"][0]["units"], 4);
  EXPECT_EQ(json["levels"][0]["cores_per_unit"], 32);
  EXPECT_EQ(json["levels"][1]["name"], "PACKAGE");
  EXPECT_EQ(json["levels"][1]["cores_per_unit_min"], 64);
  ASSERT_EQ(json["groups"].size(), 7U);
  EXPECT_EQ(json["groups"][2]["level"], "NUMA");
  EXPECT_EQ(json["groups"][2]["members"], (std::vector<unsigned>{2, 6, 10}));
  EXPECT_EQ(json["groups"][2]["leader"], 2);
  EXPECT_EQ(json["groups"][6]["level"], "MACHINE");
  EXPECT_EQ(json["groups"][6]["members"], (std::vector<unsigned>{0, 2}));
  ASSERT_EQ(json["results"].size(), 14U);
  EXPECT_EQ(json["results"][1]["pus"], "32");
  EXPECT_EQ(json["results"][1]["units"]["NUMA"], 1);
  EXPECT_EQ(json["results"][0]["leads"].size(), 3U);
  EXPECT_FALSE(json.contains("declined"));
}

TEST(TopoCommand, RanksDefaultToCores) {
  const auto json = nlohmann::json::parse(run({"--topology", kKunpeng, "--json"}));
  EXPECT_EQ(json["participants"], 128);
}

TEST(TopoCommand, AMachineIsNamedOrDescribedInAFile) {
  const std::string file = MUSTER_TEST_MACHINES "/../../sim/machines/kunpeng920-2s.machine";
  for (const std::string& machine : {std::string("kunpeng920-2s"), file}) {
    const auto json = nlohmann::json::parse(run({"--machine", machine, "--json"}));
    EXPECT_EQ(json["machine"], "kunpeng920-2s");
    EXPECT_EQ(json["participants"], 128);
  }
  const std::string xml = MUSTER_TEST_MACHINES "/hybrid-6p8e.xml";
  EXPECT_EQ(nlohmann::json::parse(run({"--machine", xml, "--json"}))["participants"], 14);
  EXPECT_EQ(run({"--machine", "oak"}).find("oak: 2 packages"), 0U);
}

TEST(TopoCommand, BindingsAndDeclining) {
  const auto lifted = nlohmann::json::parse(
      run({"--topology", kKunpeng, "--json", "--bindings", "0-40", "1", "CR2:HT2"}));
  EXPECT_EQ(lifted["groups"][0]["members"], (std::vector<unsigned>{1, 2}));
  EXPECT_TRUE(lifted["results"][0]["units"]["NUMA"].is_null());
  const auto declined =
      nlohmann::json::parse(run({"--topology", kKunpeng, "--json", "--bindings", "0", "none"}));
  EXPECT_TRUE(declined["groups"].empty());
  EXPECT_NE(declined["declined"].get<std::string>().find("rank 1"), std::string::npos);
}

TEST(TopoCommand, TextShowsTheTree) {
  const std::string text = run({"--topology", kKunpeng, "--levels", "numa"});
  EXPECT_NE(text.find("NUMA     4 units of 32 cores"), std::string::npos) << text;
  EXPECT_NE(text.find("MACHINE  leader 0  members 0,32,64,96"), std::string::npos) << text;
}

TEST(TopoCommand, WritesAPicture) {
  const std::string path = ::testing::TempDir() + "muster-topo-command.svg";
  run({"--topology", kKunpeng, "--svg", path});
  EXPECT_GT(std::filesystem::file_size(path), 10000U);
  std::filesystem::remove(path);
  try {
    run({"--topology", kKunpeng, "--svg", "/no/such/folder/a.svg"});
    FAIL() << "wrote into a folder that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::system);
  }
}

TEST(TopoCommand, APictureForAPipe) {
  const std::string text = run({"--topology", kKunpeng, "--svg", "-"});
  EXPECT_EQ(text.find("<?xml"), 0U) << text.substr(0, 80);
  EXPECT_EQ(text.find("</svg>"), text.size() - 7);
  EXPECT_FALSE(std::filesystem::exists("-"));
  EXPECT_THROW(run({"--topology", kKunpeng, "--svg", "-", "--json"}), Error);
}

TEST(TopoCommand, Errors) {
  EXPECT_THROW(run({"--topology", "nonsense"}), Error);
  EXPECT_THROW(run({"--topology", kKunpeng, "--levels", "L7"}), Error);
  EXPECT_THROW(run({"--topology", kKunpeng, "--map-by", "chance"}), Error);
  EXPECT_THROW(run({"--topology", kKunpeng, "--ranks", "2", "--bindings", "1"}), Error);
  EXPECT_THROW(run({"--ranks", "0"}), CLI::ParseError);
  EXPECT_THROW(run({"--ranks", "65537"}), CLI::ParseError);  // no barrier has so many
  EXPECT_THROW(run({"--ranks", "many"}), CLI::ParseError);
  EXPECT_THROW(run({"--map-by", "core", "--bindings", "0"}), CLI::ParseError);
}

}  // namespace
}  // namespace muster
