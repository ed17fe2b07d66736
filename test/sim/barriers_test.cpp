// SPDX-License-Identifier: BSD-3-Clause
// Every registered barrier on hundreds of random modelled machines: it holds and does not hang.
// And barriers with a fault do not.
#include <gtest/gtest.h>

#include <cstdlib>

#include "barrier_mutants.hpp"
#include "random_machine.hpp"

namespace muster::sim {
namespace {

unsigned rounds() {
  const char* const soak = std::getenv("MUSTER_SOAK");
  return soak != nullptr ? 300U * static_cast<unsigned>(std::atoi(soak)) : 300U;
}

class EveryBarrier : public testing::TestWithParam<std::string> {};

TEST_P(EveryBarrier, HoldsOnRandomMachines) {
  StackPool pool;
  for (unsigned seed = 0; seed < rounds(); ++seed) {
    RandomSetup random = random_setup(seed);
    ASSERT_EQ(check_tree(random.groups), "");
    if (seed % 4 != 0) random.setup.shape.groups = &random.groups;
    try {
      const BarrierOutcome outcome = run_barrier(GetParam(), random.setup, pool);
      EXPECT_TRUE(random.setup.shape.participants == 1 || outcome.latency_ns > 0) << random.text;
    } catch (const Error& error) {
      FAIL() << random.text << ": " << error.what();
    }
  }
}

std::vector<std::string> barriers_and_peers() {
  std::vector<std::string> all = modelled_barriers();
  for (const char* peer : {"libgomp", "libomp-hyper"}) all.emplace_back(peer);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Sim, EveryBarrier, testing::ValuesIn(barriers_and_peers()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// Whether one of the random machines catches it.
template <class B>
bool caught() {
  StackPool pool;
  for (unsigned seed = 0; seed < 300; ++seed) {
    try {
      run_barrier_as<B>(random_setup(seed).setup, pool);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Status::system);
      return true;
    }
  }
  return false;
}

// The model has to catch them, or its silence about the others would say nothing. (Weakened memory
// orders are the checked machine's to find: the model's stores become visible in program order.)
TEST(Mutants, AreCaught) {
  EXPECT_TRUE(caught<dissemination_parity_lost::Dissemination<Modelled>>());
  EXPECT_TRUE(caught<counter_reset_after_the_release::SenseReversing<Modelled>>());
  EXPECT_TRUE(caught<last_member_not_gathered::SenseReversingCounter<Modelled>>());
  EXPECT_TRUE(caught<counters_that_do_not_wrap::SenseReversingCounter<Modelled>>());
  EXPECT_TRUE(caught<one_member_gathered_for_all::SenseReversingCounter<Modelled>>());
  EXPECT_TRUE(caught<tournament_first_loser_not_woken::Tournament<Modelled>>());
}

TEST(Runs, AreTheSameToTheBit) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const RandomSetup random = random_setup(seed);
    for (const std::string& name : modelled_barriers()) {
      StackPool first;
      StackPool second;
      const BarrierOutcome one = run_barrier(name, random.setup, first);
      const BarrierOutcome two = run_barrier(name, random_setup(seed).setup, second);
      EXPECT_EQ(one.latency_ns, two.latency_ns) << name << " " << random.text;
      EXPECT_EQ(one.events, two.events) << name << " " << random.text;
    }
  }
}

TEST(Runs, ADeadlockNamesWhoWaits) {
  StackPool pool;
  BarrierSetup setup = random_setup(3).setup;
  setup.shape.participants = 2;
  setup.geometry.die_of_.assign(2, 0);
  setup.geometry.inner_.clear();
  try {
    run_barrier_as<tournament_first_loser_not_woken::Tournament<Modelled>>(setup, pool);
    FAIL() << "it hangs";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("participant 1 for cell"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace muster::sim
