// SPDX-License-Identifier: BSD-3-Clause
// The hierarchical barriers over other machines' trees: the participants run here, grouped as if
// they sat there, so that trees of several levels really run.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "capi_subject.hpp"

namespace muster::test {
namespace {

using nlohmann::json;

struct Machine {
  const char* name;
  const char* topology;  // a file of test/machines, or a synthetic description
  unsigned levels;       // of 60 ranks mapped by core, the top group included
};

void PrintTo(const Machine& machine, std::ostream* out) { *out << machine.name; }

constexpr Machine machines[] = {
    {"kunpeng920_2s", "kunpeng920-2s.txt", 3},
    {"epyc_2s_32L3", "epyc-2s-32L3.txt", 4},
    {"jet", "jet.txt", 4},
    {"knl_snc4_flat", "knl-snc4-flat.txt", 4},
    {"oak", "oak.txt", 2},
    {"packages_inside_numa", "packages-inside-numa.txt", 3},
    {"power9_smt4_2s", "power9-smt4-2s.txt", 3},
    {"two_dies", "two-dies.txt", 3},
    {"xeon_snc2_2s", "xeon-snc2-2s.txt", 3},
    {"hybrid_6p8e", "hybrid-6p8e.xml", 3},
    {"uneven_numa", "uneven-numa.xml", 3},
    {"disallowed_pus", "disallowed-pus.xml", 2},
    {"half_memoryless_package", "half-memoryless-package.xml", 3},
    {"deep", "package:2 numa:2 l3:2 l2:2 core:2 pu:1", 5},
};

std::string path_of(const char* topology) {
  const std::string name = topology;
  const bool file = name.ends_with(".txt") || name.ends_with(".xml");
  return file ? std::string(MUSTER_TEST_MACHINES) + "/" + name : name;
}

std::size_t levels_in(const json& explained) {
  std::set<std::string> names;
  for (const json& group : explained["groups"]) names.insert(group["level"]);
  return names.size();
}

class ImposedTree : public testing::TestWithParam<Machine> {
 protected:
  // Runs a barrier and returns what explain says of it.
  json run(muster_options options, bool processes, Random& random) {
    const std::string topology = path_of(GetParam().topology);
    options.topology = topology.c_str();
    options.flags |= MUSTER_EXACT | (processes ? unsigned{MUSTER_SHARED} : 0U);
    options.first_episode = 0xfffffff0;
    CapiSubject barrier(options);
    EXPECT_EQ(run_trial({&barrier}, {.seed = random.next(),
                                     .episodes = rounds(2000),
                                     .budget_ms = 20,
                                     .processes = processes}),
              "")
        << "replay: " << replay_command();
    return json::parse(explain(barrier.handle(), "json"));
  }
};

TEST_P(ImposedTree, EveryMapping) {
  Random random(case_seed());
  const HangGuard guard(120);
  for (const char* algorithm : {"topo", "topo-counter"}) {
    for (const char* map_by : {"core", "numa", "socket"}) {
      for (const unsigned participants : {5U, 14U}) {
        muster_options options = plain_options(participants, algorithm);
        options.map_by = map_by;
        run(options, participants == 14, random);
      }
    }
    muster_options options = plain_options(60, algorithm);
    options.map_by = "core";
    EXPECT_EQ(levels_in(run(options, false, random)), GetParam().levels) << algorithm;
  }
}

TEST_P(ImposedTree, EveryMask) {
  Random random(case_seed());
  const HangGuard guard(120);
  for (const char* algorithm : {"topo-NUMA", "topo-SOCKET", "topo-NUMA-SOCKET", "topo-CORE-L3",
                                "topo-counter-CORE", "topo-counter-NUMA-SOCKET"}) {
    muster_options options = plain_options(12, algorithm);
    options.map_by = random.one_in(2) ? "core" : "numa";
    run(options, random.one_in(2), random);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ImposedTree, testing::ValuesIn(machines),
                         [](const auto& instance) { return std::string(instance.param.name); });

// 2 packages x 2 NUMA nodes x 4 cores: PUs 0-3 and 4-7 in the first package.
constexpr const char* sixteen = "package:2 numa:2 l3:1 l2:4 core:1 pu:1";

json run_bound(const std::vector<const char*>& bindings, const char* algorithm, Random& random,
               bool processes) {
  muster_options options = plain_options(static_cast<unsigned>(bindings.size()), algorithm);
  options.topology = sixteen;
  options.bindings = bindings.data();
  options.flags = MUSTER_EXACT | (processes ? unsigned{MUSTER_SHARED} : 0U);
  CapiSubject barrier(options);
  EXPECT_EQ(run_trial({&barrier}, {.seed = random.next(),
                                   .episodes = rounds(2000),
                                   .budget_ms = 20,
                                   .processes = processes}),
            "")
      << "replay: " << replay_command();
  return json::parse(explain(barrier.handle(), "json"));
}

std::vector<std::vector<unsigned>> groups_of(const json& explained, const char* level) {
  std::vector<std::vector<unsigned>> groups;
  for (const json& group : explained["groups"]) {
    if (group["level"] == level) groups.push_back(group["members"]);
  }
  return groups;
}

using Groups = std::vector<std::vector<unsigned>>;

TEST(Lifted, RanksThatSpanANumaNodeJoinAtThePackage) {
  Random random(case_seed());
  const HangGuard guard(60);
  for (const char* algorithm : {"topo", "topo-counter"}) {
    for (const bool processes : {false, true}) {
      // Ranks 2 and 5 span both NUMA nodes of a package, rank 6 spans the packages.
      const json explained = run_bound({"0", "1", "3-4", "8", "12-13", "8-15", "7-8", "4", "14"},
                                       algorithm, random, processes);
      EXPECT_EQ(groups_of(explained, "NUMA"), (Groups{{0, 1}, {3}, {4, 8}, {7}})) << explained;
      EXPECT_EQ(groups_of(explained, "PACKAGE"), (Groups{{0, 2, 7}, {3, 4, 5}})) << explained;
      EXPECT_EQ(groups_of(explained, "MACHINE"), (Groups{{0, 3, 6}})) << explained;
    }
  }
}

TEST(Lifted, EverySetOfBindingsRuns) {
  Random random(case_seed());
  const HangGuard guard(120);
  for (unsigned round = 0; round < rounds(40); ++round) {
    std::vector<std::string> texts;
    const unsigned participants = 2 + random.below(10);
    for (unsigned rank = 0; rank < participants; ++rank) {
      const unsigned first = random.below(16);
      const unsigned last = std::min(first + (random.one_in(2) ? 0 : random.below(15)), 15U);
      texts.push_back(std::to_string(first) + "-" + std::to_string(last));
      if (texts.back() == "0-15") texts.back() = "0-14";  // all of them would be unbound
    }
    std::vector<const char*> bindings;
    for (const std::string& text : texts) bindings.push_back(text.c_str());
    muster_options options =
        plain_options(participants, random.one_in(2) ? "topo" : "topo-counter");
    options.topology = sixteen;
    options.bindings = bindings.data();
    options.flags = MUSTER_EXACT;
    CapiSubject barrier(options);
    EXPECT_EQ(run_trial({&barrier}, {.seed = random.next(), .episodes = 100, .budget_ms = 10}), "")
        << "replay: " << replay_command();
  }
}

TEST(Imposed, LocalityStringsServeAsBindings) {
  Random random(case_seed());
  const HangGuard guard(60);
  const std::vector<const char*> localities = {"SK0:L30:L20:CR0:HT0:NM0", "SK0:L30:L21:CR1:HT1:NM0",
                                               "SK0:L31:L24:CR4:HT4:NM1", "SK1:L32:L28:CR8:HT8:NM2",
                                               "SK1:L33:L212-13:CR12-13:HT12-13:NM3"};
  const json explained = run_bound(localities, "topo", random, false);
  EXPECT_EQ(groups_of(explained, "NUMA"), (Groups{{0, 1}, {2}, {3}, {4}})) << explained;
  EXPECT_EQ(groups_of(explained, "PACKAGE"), (Groups{{0, 2}, {3, 4}})) << explained;
}

TEST(Imposed, AnUnboundRankDeclines) {
  const std::vector<const char*> bindings = {"0", "", "2"};
  muster_options options = plain_options(3, "topo");
  options.topology = sixteen;
  options.bindings = bindings.data();
  options.flags = MUSTER_EXACT;
  muster_barrier* barrier = nullptr;
  EXPECT_EQ(muster_barrier_create(&barrier, &options), MUSTER_EDECLINED);
  EXPECT_NE(std::string(muster_last_error()).find("rank 1"), std::string::npos)
      << muster_last_error();
  EXPECT_EQ(barrier, nullptr);

  options.flags = 0;
  CapiSubject other(options, true);
  const json explained = json::parse(explain(other.handle(), "json"));
  EXPECT_NE(explained["algorithm"], "topo");
  EXPECT_EQ(explained["asked"], "topo");
  EXPECT_NE(std::string(explained["why"]).find("declines"), std::string::npos) << explained;
  EXPECT_EQ(run_trial({&other}, {.seed = case_seed(), .episodes = 100}), "");
}

}  // namespace
}  // namespace muster::test
