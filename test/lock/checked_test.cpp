// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "check/report.hpp"
#include "check/suite/locks.hpp"
#include "lock/registry.hpp"

namespace muster::check {
namespace {

class CheckedLock : public testing::TestWithParam<std::string> {};

TEST_P(CheckedLock, HoldsInAllExecutions) {
  for (const LockScenario& scenario : lock_scenarios(GetParam())) {
    Tuning tuning;
    const Program program = make_lock_program(scenario, tuning);
    const Result result = Explorer(program, {}).explore();
    EXPECT_EQ(Verdict::holds, result.verdict)
        << scenario.name() << ": " << verdict_name(result.verdict) << "\n"
        << (result.violation ? format_violation(program, *result.violation) : "");
    EXPECT_GT(result.executions, 0U) << scenario.name();
    std::printf("%-50s %8llu executions\n", scenario.name().c_str(),
                static_cast<unsigned long long>(result.executions));
  }
}

TEST_P(CheckedLock, NeedsEveryOrderItWrites) {
  mutate(GetParam(), mutation_programs_of_lock(GetParam()), [&](const Mutation& m) {
    EXPECT_TRUE(m.fate == Fate::caught || m.fate == Fate::stronger)
        << format_site(m.access.site) << " " << m.access.what << ", weakened to "
        << ordering_name(m.weaker) << ": " << fate_name(m.fate);
    return true;
  });
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, CheckedLock, testing::ValuesIn(checked_locks()), test_name);

}  // namespace
}  // namespace muster::check
