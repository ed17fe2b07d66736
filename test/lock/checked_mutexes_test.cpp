// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "check/report.hpp"
#include "check/suite/mutexes.hpp"

namespace muster::check {
namespace {

class CheckedMutex : public testing::TestWithParam<std::string> {};

TEST_P(CheckedMutex, HoldsInAllExecutions) {
  for (const MutexScenario& scenario : mutex_scenarios(GetParam())) {
    Tuning tuning;
    const Program program = make_mutex_program(scenario, tuning);
    const Result result = Explorer(program, {}).explore();
    EXPECT_EQ(Verdict::holds, result.verdict)
        << scenario.name() << ": " << verdict_name(result.verdict) << "\n"
        << (result.violation ? format_violation(program, *result.violation) : "");
    EXPECT_GT(result.executions, 0U) << scenario.name();
    std::printf("%-50s %8llu executions\n", scenario.name().c_str(),
                static_cast<unsigned long long>(result.executions));
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, CheckedMutex, testing::ValuesIn(checked_mutexes()), test_name);

TEST(CheckedMutexes, NeedEveryOrderTheyWrite) {
  mutate("mutex", mutation_programs_of_mutexes(), [&](const Mutation& m) {
    EXPECT_TRUE(m.fate == Fate::caught || m.fate == Fate::stronger)
        << format_site(m.access.site) << " " << m.access.what << ", weakened to "
        << ordering_name(m.weaker) << ": " << fate_name(m.fate);
    return true;
  });
}

TEST(CheckedMutexes, MutantsAreNoticed) {
  for (const HandWritten& mutant : hand_written_mutexes()) {
    EXPECT_EQ(run_mutant(mutant.name, mutant.programs).fate, Fate::caught) << mutant.name;
  }
}

}  // namespace
}  // namespace muster::check
