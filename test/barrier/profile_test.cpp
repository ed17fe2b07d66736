// SPDX-License-Identifier: BSD-3-Clause
// What `auto` takes from profiles: whose, for which team, and what it makes of broken ones.
#include "fitting/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace muster {
namespace {

using testing::HasSubstr;

const char* const server = "package:2 numa:2 core:32 pu:1";

const char* const good = R"(# by hand
muster-profile 1
machine threads NUMA:4 PACKAGE:2 CORE:128  # of threads
team 16 NUMA:1 PACKAGE:1 apart:0 takes scheduled-MACHINE:tree8+line 0.85 not topo-NUMA 1
team 16 NUMA:4 PACKAGE:2 apart:16 takes mcs 1.17
team 128 NUMA:4 PACKAGE:2 apart:4 takes scheduled-NUMA:tree7+line12/all 1.53
machine mpi NUMA:4 PACKAGE:2 CORE:128
team 3 NUMA:1 PACKAGE:1 apart:0 takes scheduled-MACHINE:all 0.2
machine threads PACKAGE:2 CORE:8
team 8 PACKAGE:2 apart:2 takes tournament 0.5
)";

class Profiles : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "muster");
    unsetenv("MUSTER_PROFILE");
    setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// The user's, or one by another name.
  std::string write(const std::string& text, const std::string& name = "profile") {
    const std::filesystem::path path = folder_ / "muster" / name;
    std::ofstream(path) << text;
    return path;
  }
  static Profiled ask(unsigned participants, Mapping map_by = Mapping::core,
                      bool progresses = false) {
    const Topology topology = Topology::from_synthetic(server);
    return profiled_choice(topology, topology.map_ranks(map_by, participants), progresses);
  }
  static std::string choice(unsigned participants, Mapping map_by = Mapping::core,
                            bool progresses = false) {
    const Profiled profiled = ask(participants, map_by, progresses);
    return profiled.choice ? profiled.choice->algorithm.text() : "none: " + profiled.ignored;
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("muster-profile." + std::to_string(getpid()));
};

TEST_F(Profiles, GiveATeamItsBarrier) {
  const std::string path = write(good);
  EXPECT_EQ(choice(16), "scheduled-MACHINE:tree8+line");
  EXPECT_EQ(choice(16, Mapping::numa), "mcs");
  EXPECT_EQ(choice(128), "scheduled-NUMA:tree7+line12/all");
  EXPECT_EQ(ask(16).choice->why, "profile '" + path +
                                     "' has it for such a team; the model predicts 0.85 us, "
                                     "and 1.00 for topo-NUMA");
}

TEST_F(Profiles, GiveATeamThatTheyLackTheNearestOnes) {
  write(good);
  EXPECT_EQ(choice(20), "scheduled-MACHINE:tree8+line");
  EXPECT_EQ(choice(20, Mapping::numa), "mcs");
  EXPECT_EQ(choice(100), "scheduled-NUMA:tree7+line12/all");
  EXPECT_THAT(ask(20).choice->why, HasSubstr("the nearest team, 16 NUMA:1 PACKAGE:1 apart:0;"));
}

TEST_F(Profiles, TellThreadsFromRanksOfAnMpi) {
  write(good);
  EXPECT_EQ(choice(3, Mapping::core, true), "scheduled-MACHINE:all");
  EXPECT_EQ(choice(3, Mapping::core, false), "scheduled-MACHINE:tree8+line");
}

TEST_F(Profiles, OfTheEnvironmentComeFirst) {
  write(good);
  setenv("MUSTER_PROFILE",
         write("muster-profile 1\nmachine threads NUMA:4 PACKAGE:2 CORE:128\n"
               "team 16 NUMA:1 PACKAGE:1 apart:0 takes tournament 1\n",
               "other")
             .c_str(),
         1);
  EXPECT_EQ(choice(16), "tournament");
  setenv("MUSTER_PROFILE", "", 1);
  EXPECT_EQ(choice(16), "none: ") << "an empty name: no profile at all";
}

TEST_F(Profiles, OfHomeWhereNoFolderIsSet) {
  const std::filesystem::path path = write(good);
  unsetenv("XDG_CONFIG_HOME");
  const std::filesystem::path home = path.parent_path() / "home";
  std::filesystem::create_directories(home / ".config/muster");
  std::filesystem::copy_file(path, home / ".config/muster/profile");
  const std::string old = getenv("HOME") != nullptr ? getenv("HOME") : "";
  setenv("HOME", home.c_str(), 1);
  EXPECT_EQ(choice(16), "scheduled-MACHINE:tree8+line");
  setenv("HOME", old.c_str(), 1);
}

TEST_F(Profiles, OfOtherMachinesAreIgnoredWithAWord) {
  const std::string path = write(
      "muster-profile 1\nmachine threads PACKAGE:2 CORE:8\n"
      "team 8 PACKAGE:2 apart:2 takes mcs 1\n");
  EXPECT_EQ(choice(16), "none: ignored: profile '" + path +
                            "' has nothing for threads on a machine of NUMA:4 PACKAGE:2 CORE:128");
}

TEST_F(Profiles, ThatAreNoneAreAnErrorWhereNamedAndIgnoredWhereFound) {
  const std::string begin = "muster-profile 1\nmachine threads NUMA:4 PACKAGE:2 CORE:128\n";
  const std::string team = "team 16 NUMA:1 PACKAGE:1 apart:0 takes ";
  const std::pair<std::string, const char*> broken[] = {
      {"", "is empty"},
      {"# nothing\n", "is empty"},
      {"muster-machine 1\n", "line 1: a profile that this version reads begins with"},
      {"muster-profile 2\n", "line 1: a profile that this version reads begins with"},
      {std::string("muster-profile 1\0", 17), "line 1: "},
      {"muster-profile 1\nroot:secret\n", "line 2: a statement is"},
      {"muster-profile 1\n" + team + "mcs 1\n", "line 2: a team stands below"},
      {"muster-profile 1\nmachine hosts NUMA:4 CORE:1\n", "line 2: a machine is"},
      {"muster-profile 1\nmachine threads NUMA:-4 CORE:1\n", "line 2: a machine is"},
      {begin + team + "secret 1\n", "line 3: a team is"},
      {begin + team + "auto 1\n", "line 3: a team is"},
      {begin + team + "scheduled-MACHINE:tree8+line9x0 1\n", "line 3: a team is"},
      {begin + team + "topo-SECRET 1\n", "line 3: a team is"},
      {begin + team + "mcs -1\n", "line 3: a team is"},
      {begin + team + "mcs nan\n", "line 3: a team is"},
      {begin + team + "mcs\n", "line 3: a team is"},
      {begin + team + "mcs 1 not\n", "line 3: a team is"},
      {begin + team + "mcs 1 not mcs 2 at all\n", "line 3: a team is"},
      {begin + "team 0 NUMA:1 PACKAGE:1 apart:0 takes mcs 1\n", "line 3: a team is"},
      {begin + "team 99999999999 NUMA:1 PACKAGE:1 apart:0 takes mcs 1\n", "line 3: a team is"},
      {begin + "team 16 NUMA:0 PACKAGE:1 apart:0 takes mcs 1\n", "line 3: a team is"},
      {begin + "team 16 PACKAGE:1 NUMA:1 apart:0 takes mcs 1\n", "line 3: a team is"},
      {begin + "team 16 NUMA:1 PACKAGE:1 takes mcs 1\n", "line 3: a team is"},
  };
  for (const auto& [text, what] : broken) {
    const std::string path = write(text);
    unsetenv("MUSTER_PROFILE");
    const Profiled found = ask(16);
    EXPECT_FALSE(found.choice) << text;
    EXPECT_THAT(found.ignored, HasSubstr(what)) << text;
    EXPECT_THAT(found.ignored, HasSubstr("ignored: profile '" + path + "'")) << text;
    EXPECT_THAT(found.ignored, testing::Not(testing::ContainsRegex("secret|SECRET"))) << text;
    setenv("MUSTER_PROFILE", path.c_str(), 1);
    try {
      static_cast<void>(ask(16));
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Status::invalid);
      EXPECT_THAT(error.what(), HasSubstr("MUSTER_PROFILE: profile '" + path + "'"));
    }
  }
  setenv("MUSTER_PROFILE", "/dev/null", 1);
  EXPECT_THROW(static_cast<void>(ask(16)), Error);
}

TEST_F(Profiles, AreIgnoredWhereTheirBarrierIsNoneForTheTeam) {
  write(
      "muster-profile 1\nmachine threads NUMA:16 CORE:4096\n"
      "team 16 NUMA:1 apart:0 takes scheduled-MACHINE:all 0.1\n");
  const Topology topology = Topology::from_synthetic("numa:16 core:256 pu:1");
  const Profiled found = profiled_choice(topology, topology.map_ranks(Mapping::core, 4096), false);
  EXPECT_FALSE(found.choice);
  EXPECT_THAT(found.ignored, HasSubstr("scheduled-MACHINE:all for 4096 participants: "));
}

TEST_F(Profiles, AreWrittenAsTheyAreRead) {
  const Profile profile = parse_profile(good, "good");
  const std::string text = format_profile(profile);
  EXPECT_EQ(format_profile(parse_profile(text, "again")), text);
  ASSERT_EQ(profile.sections.size(), 3U);
  EXPECT_THAT(text, HasSubstr("\n# Behind a barrier: the microseconds that the model predicts"));
  EXPECT_THAT(text, HasSubstr("team 16 NUMA:1 PACKAGE:1 apart:0 takes scheduled-MACHINE:tree8+line "
                              "0.85 not topo-NUMA 1.00\nteam 16 NUMA:4"));
}

}  // namespace
}  // namespace muster
