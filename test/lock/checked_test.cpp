// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "check/report.hpp"
#include "check/suite/locks.hpp"
#include "check/suite/mutexes.hpp"
#include "check/suite/station.hpp"
#include "lock/registry.hpp"

namespace muster::check {
namespace {

void expect_accounted_for(const std::vector<Mutation>& mutations) {
  for (const Mutation& m : mutations) {
    EXPECT_TRUE(m.fate == Fate::caught || m.fate == Fate::stronger)
        << format_site(m.access.site) << " " << m.access.what << ", weakened to "
        << ordering_name(m.weaker) << ": " << fate_name(m.fate);
  }
}

class CheckedLock : public testing::TestWithParam<std::string> {};

/// What `muster check` leaves out for want of time; the rest is its own test's.
class LongCheckedLock : public CheckedLock {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LongCheckedLock);

TEST_P(LongCheckedLock, HoldsInAllExecutions) {
  for (const LockScenario& scenario : lock_scenarios(GetParam(), true)) {
    Tuning tuning;
    const Program program = make_lock_program(scenario, tuning);
    const Result result = Explorer(program, {}).explore();
    EXPECT_EQ(Verdict::holds, result.verdict)
        << scenario.name() << ": " << verdict_name(result.verdict) << "\n"
        << (result.violation ? format_violation(program, *result.violation) : "");
    std::printf("%-50s %8llu executions\n", scenario.name().c_str(),
                static_cast<unsigned long long>(result.executions));
  }
}

// Each finds what no other does: numbers that wrap, a lock given up inside, three at a time, a
// wake-up for nothing.
TEST(Defaults, HaveWhatRareFaultsNeed) {
  const auto has = [](const auto& scenarios, auto variant, unsigned at_least) {
    return std::any_of(scenarios.begin(), scenarios.end(), [&](const auto& scenario) {
      if constexpr (requires { scenario.clients; }) {
        return scenario.variant == variant && scenario.clients >= at_least;
      } else {
        return scenario.variant == variant && scenario.participants >= at_least;
      }
    });
  };
  const auto rings = lock_scenarios("rings");
  EXPECT_TRUE(has(rings, LockVariant::wraps, 1) && has(rings, LockVariant::leaving, 2));
  EXPECT_TRUE(has(rings, LockVariant::yields, 1));
  EXPECT_TRUE(has(lock_scenarios("auto"), LockVariant::yields, 1));
  EXPECT_TRUE(has(lock_scenarios("auto"), LockVariant::aided, 3));
  for (const std::string& lock : checked_locks()) {
    const auto scenarios = lock_scenarios(lock);
    EXPECT_TRUE(std::any_of(scenarios.begin(), scenarios.end(), [](const LockScenario& scenario) {
      return scenario.clients >= 3;
    })) << lock;
  }
  for (const std::string& mutex : checked_mutexes()) {
    const auto scenarios = mutex_scenarios(mutex);
    EXPECT_TRUE(has(scenarios, MutexVariant::woken, 2)) << mutex;
    EXPECT_TRUE(has(scenarios, MutexVariant::timed, 3)) << mutex;
  }
}

// Of locks whose clients have a state of their own: their successors need it.
TEST(CheckedLocks, HaveSuccessorsInTheirClientsSeats) {
  for (const char* const lock :
       {"ticket", "mcs", "clh", "oyama", "cc-synch", "dsm-synch", "h-synch"}) {
    unsigned successors = 0;
    for (const LockScenario& scenario : lock_scenarios(lock)) {
      if (scenario.has_successor()) ++successors;
    }
    EXPECT_EQ(1U, successors) << lock;
  }
  for (const char* const lock : {"clh", "cc-synch", "h-synch"}) {
    Tuning tuning;
    const LockScenario scenario{lock, 2, 1, LockVariant::stranger};
    const Result result = Explorer(make_lock_program(scenario, tuning), {}).explore();
    EXPECT_NE(Verdict::holds, result.verdict) << lock;
  }
}

TEST_P(CheckedLock, NeedsEveryOrderItWrites) {
  expect_accounted_for(mutate(GetParam(), mutation_programs_of_lock(GetParam())));
}

TEST(CheckedMutexes, NeedEveryOrderTheyWrite) {
  expect_accounted_for(mutate("mutex", mutation_programs_of_mutexes()));
}

std::string read(const std::string& path) {
  std::ifstream file(MUSTER_SOURCE_DIR "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Mutants, WrittenByHandAreNoticedAsTheListSays) {
  const std::string rows = read("check/suite/mutants.txt");
  auto listed = std::count(rows.begin(), rows.end(), '\n') - 1;  // the first line is no row
  std::map<std::string, int> noticed;
  for (const auto& mutants : {hand_written_mutants(), hand_written_mutexes(), hand_written_locks(),
                              hand_written_stations()}) {
    for (const HandWritten& mutant : mutants) {
      const Mutation made = run_mutation(hand_written_mutation(mutant.name), mutant.programs);
      EXPECT_EQ(made.fate, Fate::caught) << mutant.name;
      // `muster check` prints it in apostrophes, to be typed again.
      EXPECT_EQ(std::string(mutant.name).find('\''), std::string::npos) << mutant.name;
      const std::string row = std::string("\n") + mutant.name + " | " + verdict_name(made.verdict);
      EXPECT_NE(rows.find(row), std::string::npos) << "check/suite/mutants.txt should say:" << row;
      --listed;
      ++noticed[verdict_name(made.verdict)];
      std::printf("%-60s %-8s %s\n", mutant.name, verdict_name(made.verdict),
                  made.caught_by.c_str());
    }
  }
  EXPECT_EQ(listed, 0) << "check/suite/mutants.txt tells of mutants that are not there";

  std::string counts;
  for (const auto& [verdict, count] : noticed) {
    counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " as `" + verdict + "`";
  }
  std::string page = read("doc/memory-model.md");
  std::replace(page.begin(), page.end(), '\n', ' ');
  EXPECT_NE(page.find(counts), std::string::npos) << "doc/memory-model.md should say: " << counts;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, CheckedLock, testing::ValuesIn(checked_locks()), test_name);
INSTANTIATE_TEST_SUITE_P(Soak, LongCheckedLock,
                         testing::ValuesIn(std::getenv("MUSTER_SOAK") != nullptr
                                               ? checked_locks()
                                               : std::vector<std::string>{}),
                         test_name);

}  // namespace
}  // namespace muster::check
