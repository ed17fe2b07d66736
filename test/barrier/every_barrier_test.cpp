// SPDX-License-Identifier: BSD-3-Clause
// Every registered barrier, by name through the C ABI, at every number of participants: threads and
// processes, every wait policy, counters near their wrap.
#include <gtest/gtest.h>

#include <tuple>

#include "capi_subject.hpp"

namespace muster::test {
namespace {

std::vector<std::string> barriers_and_radixes() {
  std::vector<std::string> names;
  for (const char* const* name = muster_barrier_names(); *name != nullptr; ++name) {
    names.emplace_back(*name);
  }
  for (const char* name : {"combining-tree:3", "combining-tree:4", "combining-tree:8", "auto"}) {
    names.emplace_back(name);
  }
  return names;
}

std::vector<unsigned> counts() {
  if (emulated) return {1, 2, 3, 5, 8};
  std::vector<unsigned> all;
  for (unsigned n = 1; n <= 17; ++n) {
    if (n <= 5 || n == 8 || n == 13 || n == 17 || (!reduced && (n <= 9 || n == 16))) {
      all.push_back(n);
    }
  }
  all.push_back(64);
  return all;
}

std::string identifier(std::string name) {
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

constexpr const char* patient_policies[] = {
    "auto", "yield", "sleep", "spin-yield", "spin-yield-sleep", "yield-sleep"};

class EveryBarrier : public testing::TestWithParam<std::tuple<std::string, unsigned>> {
 protected:
  void run(bool processes, unsigned flags = 0) {
    const auto& [name, participants] = GetParam();
    Random random(case_seed());
    muster_options options = options_for(participants, name.c_str());
    options.flags = flags | (processes ? unsigned{MUSTER_SHARED} : 0U);
    options.wait = patient_policies[random.below(std::size(patient_policies))];
    options.first_episode = random.one_in(2) ? 0xfffffff0 : 0;
    const HangGuard guard(120, name);
    CapiSubject barrier(options);
    EXPECT_EQ(run_trial({&barrier}, {.seed = random.next(),
                                     .episodes = rounds(20000),
                                     .budget_ms = 40,
                                     .processes = processes,
                                     .bind = random.one_in(2)}),
              "")
        << "wait policy " << options.wait << "\nreplay: " << replay_command();
  }
};

TEST_P(EveryBarrier, InThreads) { run(false); }
TEST_P(EveryBarrier, InProcesses) { run(true); }

INSTANTIATE_TEST_SUITE_P(All, EveryBarrier,
                         testing::Combine(testing::ValuesIn(barriers_and_radixes()),
                                          testing::ValuesIn(counts())),
                         [](const auto& instance) {
                           return identifier(std::get<0>(instance.param)) + "_" +
                                  std::to_string(std::get<1>(instance.param));
                         });

/// Those whose wait has two halves, by what creating one says.
std::vector<std::string> barriers_that_split() {
  std::vector<std::string> names;
  for (const std::string& name : barriers_and_radixes()) {
    muster_options options = options_for(2, name.c_str());
    options.flags = MUSTER_SPLIT;
    muster_barrier* barrier = nullptr;
    if (muster_barrier_create(&barrier, &options) == MUSTER_OK) names.push_back(name);
    muster_barrier_destroy(barrier);
  }
  return names;
}

// Half of the waits are an arrive and a depart, the others whole.
class EverySplitBarrier : public EveryBarrier {};

TEST_P(EverySplitBarrier, InThreads) { run(false, MUSTER_SPLIT); }
TEST_P(EverySplitBarrier, InProcesses) { run(true, MUSTER_SPLIT); }

INSTANTIATE_TEST_SUITE_P(All, EverySplitBarrier,
                         testing::Combine(testing::ValuesIn(barriers_that_split()),
                                          testing::Values(2U, 3U, 5U, 8U)),
                         [](const auto& instance) {
                           return identifier(std::get<0>(instance.param)) + "_" +
                                  std::to_string(std::get<1>(instance.param));
                         });

class EveryPolicy : public testing::TestWithParam<std::tuple<std::string, const char*>> {};

// As many as fit on any machine worth the name, and more than fit on this one.
TEST_P(EveryPolicy, AtEveryLoad) {
  const auto& [name, wait] = GetParam();
  Random random(case_seed());
  const bool spins = wait == std::string("spin");
  const auto cpus = static_cast<unsigned>(allowed_cpus().size());
  const HangGuard guard(120, name + " " + wait);
  for (const unsigned participants : {2U, 2 * cpus + 1}) {
    muster_options options = options_for(participants, name.c_str());
    options.wait = wait;
    CapiSubject barrier(options);
    // Spinning takes a whole time slice of the scheduler's once there are too few CPUs.
    const unsigned episodes = spins && participants > cpus ? 5 : rounds(2000);
    EXPECT_EQ(
        run_trial({&barrier},
                  {.seed = random.next(), .episodes = episodes, .budget_ms = 30, .bind = true}),
        "")
        << participants << " participants\nreplay: " << replay_command();
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryPolicy,
                         testing::Combine(testing::ValuesIn(barriers_and_radixes()),
                                          testing::Values("auto", "spin", "yield", "sleep",
                                                          "spin-yield", "spin-yield-sleep",
                                                          "yield-sleep")),
                         [](const auto& instance) {
                           return identifier(std::get<0>(instance.param)) + "_" +
                                  identifier(std::get<1>(instance.param));
                         });

class EveryAlgorithm : public testing::TestWithParam<std::string> {};

TEST_P(EveryAlgorithm, CountersWrap) {
  Random random(case_seed());
  const HangGuard guard(60, GetParam());
  for (const std::uint32_t first : {0xffffffffU, 0xfffffffeU, 0x7ffffff8U, 1U}) {
    muster_options options = options_for(3, GetParam().c_str());
    options.first_episode = first;
    CapiSubject barrier(options);
    EXPECT_EQ(run_trial({&barrier}, {.seed = random.next(), .episodes = 40}), "")
        << "first episode " << first << "\nreplay: " << replay_command();
  }
}

TEST_P(EveryAlgorithm, ServesOneTeamAfterAnother) {
  Random random(case_seed());
  const HangGuard guard(60, GetParam());
  CapiSubject barrier(options_for(4, GetParam().c_str()));
  for (unsigned team = 0; team < 20; ++team) {
    ASSERT_EQ(run_trial({&barrier}, {.seed = random.next(), .episodes = 1 + random.below(7)}), "")
        << "team " << team << "\nreplay: " << replay_command();
  }
}

TEST_P(EveryAlgorithm, ManyInOneSegment) {
  Random random(case_seed());
  const HangGuard guard(60, GetParam());
  muster_segment* segment = nullptr;
  ASSERT_EQ(muster_segment_create(&segment, 4U << 20), MUSTER_OK) << muster_last_error();
  for (const bool processes : {false, true}) {
    std::vector<std::unique_ptr<CapiSubject>> barriers;
    std::vector<Subject*> all;
    for (unsigned i = 0; i < 50; ++i) {
      muster_options options = options_for(3, GetParam().c_str());
      options.segment = segment;
      barriers.push_back(std::make_unique<CapiSubject>(options));
      all.push_back(barriers.back().get());
    }
    EXPECT_EQ(run_trial(all, {.seed = random.next(), .episodes = 500, .processes = processes}), "")
        << "replay: " << replay_command();
  }
  muster_segment_destroy(segment);
}

// Whoever leaves first destroys it, while the others may still be inside.
TEST_P(EveryAlgorithm, MayBeDestroyedRightAfterAWait) {
  const HangGuard guard(60, GetParam());
  Random random(case_seed());
  for (unsigned round = 0; round < rounds(100); ++round) {
    muster_options options = options_for(3, GetParam().c_str());
    options.wait = patient_policies[random.below(std::size(patient_policies))];
    muster_barrier* barrier = nullptr;
    ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK) << muster_last_error();
    std::atomic<int> first{0};
    run_threads(3, [&](unsigned rank) {
      EXPECT_EQ(muster_barrier_timedwait(barrier, rank, patience_ns), MUSTER_OK);
      if (first.exchange(1) == 0) muster_barrier_destroy(barrier);
    });
  }
}

// How much was really done is worth a line: trials end by time.
class Total : public testing::Environment {
 public:
  void TearDown() override {
    std::printf("%llu episodes\n", static_cast<unsigned long long>(episodes_run()));
  }
};
const auto* const total = testing::AddGlobalTestEnvironment(new Total);

INSTANTIATE_TEST_SUITE_P(All, EveryAlgorithm, testing::ValuesIn(barriers_and_radixes()),
                         [](const auto& instance) { return identifier(instance.param); });

}  // namespace
}  // namespace muster::test
