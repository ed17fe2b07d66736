// SPDX-License-Identifier: BSD-3-Clause
// Barriers of the C ABI on the tree that MUSTER_TOPOLOGY imposes, 2 packages x 2 NUMA nodes x 32
// cores: the participants run here, grouped as if they sat there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capi_subject.hpp"

namespace muster::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Groups = std::vector<std::vector<unsigned>>;

Groups groups_of(const json& explained, const char* level) {
  Groups groups;
  for (const json& group : explained["groups"]) {
    if (group["level"] == level) groups.push_back(group["members"]);
  }
  return groups;
}

constexpr const char* slow = "scheduled-PACKAGE:tree2+line2x1";

class Imposed : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_NE(std::getenv("MUSTER_TOPOLOGY"), nullptr) << "ctest sets it";
    options_.flags = MUSTER_EXACT | (GetParam() ? unsigned{MUSTER_SHARED} : 0U);
  }

  /// Runs a barrier with the options, and returns what is said of it.
  json run() {
    CapiSubject barrier(options_);
    EXPECT_EQ(run_trial({&barrier}, {.seed = case_seed(),
                                     .episodes = rounds(2000),
                                     .budget_ms = 200,
                                     .processes = GetParam()}),
              "")
        << replay_command();
    return json::parse(explain(barrier.handle(), "json"));
  }

  muster_options options_ = plain_options(14, "topo");
};

// All run on the first few CPUs here, which are of one NUMA node there: by the profile they run
// what no estimate would choose.
TEST_P(Imposed, FollowsWhomNobodyHasBound) {
  const HangGuard guard(60);
  const std::string profile = testing::TempDir() + "muster-imposed." + std::to_string(getpid());
  std::ofstream(profile) << "muster-profile 1\nmachine threads NUMA:4 PACKAGE:2 CORE:128\n"
                            "team 14 NUMA:1 PACKAGE:1 apart:0 takes "
                         << slow << " 1\nteam 14 NUMA:4 PACKAGE:2 apart:14 takes mcs 1\n";
  setenv("MUSTER_PROFILE", profile.c_str(), 1);
  options_ = plain_options(14, "following");
  options_.flags = GetParam() ? unsigned{MUSTER_SHARED} : 0U;
  const json explained = run();
  std::remove(profile.c_str());
  const json& where = explained["whereabouts"];
  ASSERT_EQ(where["pus"].size(), 14U);
  for (const json& pu : where["pus"]) EXPECT_LT(pu.get<unsigned>(), 128U);
  if (GetParam()) return;  // rank 0's process knows what runs
  EXPECT_EQ(where["changes"], 1);
  EXPECT_EQ(where["composed"], slow);
}

TEST_P(Imposed, MappedByNumaNode) {
  const HangGuard guard(60);
  options_.map_by = "numa";
  const json explained = run();
  EXPECT_EQ(explained["algorithm"], "topo");
  EXPECT_EQ(groups_of(explained, "NUMA"),
            (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10}, {3, 7, 11}}));
  EXPECT_EQ(groups_of(explained, "PACKAGE"), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(groups_of(explained, "MACHINE"), (Groups{{0, 2}}));
}

TEST_P(Imposed, BoundAsSaid) {
  const HangGuard guard(60);
  options_.participants = 5;
  const char* bindings[] = {"0-63", "0", "1", "64", "65"};  // rank 0 is lifted to its package
  options_.bindings = bindings;
  const json explained = run();
  EXPECT_EQ(groups_of(explained, "NUMA"), (Groups{{1, 2}, {3, 4}}));
  EXPECT_EQ(groups_of(explained, "PACKAGE"), (Groups{{0, 1}, {3}}));
  EXPECT_EQ(groups_of(explained, "MACHINE"), (Groups{{0, 3}}));
}

TEST_P(Imposed, AnArgumentOutranksIt) {
  const HangGuard guard(60);
  options_.topology = "package:2 core:4 pu:1";
  options_.map_by = "core";
  options_.participants = 8;
  EXPECT_EQ(groups_of(run(), "PACKAGE"), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
}

TEST_P(Imposed, ItsPusAreTheOnesThereAre) {
  options_.participants = 2;
  const char* bindings[] = {"0", "128"};
  options_.bindings = bindings;
  muster_barrier* barrier = nullptr;
  EXPECT_EQ(muster_barrier_create(&barrier, &options_), MUSTER_EINVAL);
  EXPECT_THAT(muster_last_error(), HasSubstr("PU 128"));
}

INSTANTIATE_TEST_SUITE_P(All, Imposed, testing::Bool(), [](const auto& instance) {
  return instance.param ? "processes" : "threads";
});

}  // namespace
}  // namespace muster::test
