// SPDX-License-Identifier: BSD-3-Clause
// Levels and groups of described machines against test/machines/*.golden, and of real ones, where
// the folder named by MUSTER_CORPUS has them, against test/machines/corpus/*.golden.
#include <gtest/gtest.h>

#include <cstdlib>

#include "describe.hpp"

namespace muster::test {
namespace {

namespace fs = std::filesystem;

void compare(const fs::path& machine, const fs::path& folder) {
  expect_golden(describe(Topology::from_file(machine.string())),
                folder / (machine.stem().string() + ".golden"), "regenerate-golden");
}

class GoldenMachine : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenMachine, LevelsAndGroups) { compare(machines / GetParam(), machines); }

INSTANTIATE_TEST_SUITE_P(Described, GoldenMachine, ::testing::ValuesIn(machine_files()), test_name);

const fs::path corpus = machines / "corpus";

TEST(GoldenMachines, AllAreThere) {
  EXPECT_GE(machine_files().size(), 18U);
  EXPECT_GE(files(corpus, {".golden"}).size(), 10U);
}

class CorpusMachine : public ::testing::TestWithParam<std::string> {};

TEST_P(CorpusMachine, LevelsAndGroups) {
  const char* const folder = std::getenv("MUSTER_CORPUS");
  if (folder == nullptr || *folder == '\0') {
    GTEST_SKIP() << "MUSTER_CORPUS names no folder of real machines";
  }
  const fs::path machine = fs::path(folder) / fs::path(GetParam()).replace_extension(".xml");
  if (!fs::exists(machine)) GTEST_SKIP() << machine << " is not there";
  compare(machine, corpus);
}

INSTANTIATE_TEST_SUITE_P(Real, CorpusMachine, ::testing::ValuesIn(files(corpus, {".golden"})),
                         test_name);

}  // namespace
}  // namespace muster::test
