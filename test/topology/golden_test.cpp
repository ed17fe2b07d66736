// SPDX-License-Identifier: BSD-3-Clause
// Levels and groups of described machines against test/machines/*.golden, and of real ones, where
// the folder named by MUSTER_CORPUS has them, against test/machines/corpus/*.golden.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "describe.hpp"

namespace muster::test {
namespace {

namespace fs = std::filesystem;

const fs::path kMachines = MUSTER_TEST_MACHINES;

bool regenerating() { return std::getenv("MUSTER_REGENERATE_GOLDEN") != nullptr; }

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> machines(const fs::path& folder, const std::vector<std::string>& endings) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (std::count(endings.begin(), endings.end(), entry.path().extension().string()) != 0) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

void compare(const fs::path& machine, const fs::path& golden) {
  const std::string actual = describe(Topology::from_file(machine.string()));
  if (regenerating()) {
    std::ofstream(golden, std::ios::binary) << actual;
    return;
  }
  ASSERT_TRUE(fs::exists(golden)) << golden
                                  << " is missing; make it with the target regenerate-golden";
  const std::string expected = read(golden);
  EXPECT_EQ(expected == actual, true)
      << golden.filename() << " differs (- expected, + actual):\n"
      << difference(expected, actual)
      << "If the new text is right: cmake --build <build folder> --target regenerate-golden";
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

class GoldenMachine : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenMachine, LevelsAndGroups) {
  const fs::path machine = kMachines / GetParam();
  compare(machine, kMachines / (machine.stem().string() + ".golden"));
}

INSTANTIATE_TEST_SUITE_P(Described, GoldenMachine,
                         ::testing::ValuesIn(machines(kMachines, {".txt", ".xml"})), test_name);

TEST(GoldenMachines, AllAreThere) {
  EXPECT_GE(machines(kMachines, {".txt", ".xml"}).size(), 18U);
  EXPECT_GE(machines(kMachines / "corpus", {".golden"}).size(), 10U);
}

class CorpusMachine : public ::testing::TestWithParam<std::string> {};

TEST_P(CorpusMachine, LevelsAndGroups) {
  const char* const corpus = std::getenv("MUSTER_CORPUS");
  if (corpus == nullptr || *corpus == '\0') {
    GTEST_SKIP() << "MUSTER_CORPUS names no folder of real machines";
  }
  const fs::path machine = fs::path(corpus) / (GetParam() + ".xml");
  if (!fs::exists(machine)) GTEST_SKIP() << machine << " is not there";
  compare(machine, kMachines / "corpus" / (GetParam() + ".golden"));
}

std::vector<std::string> corpus_names() {
  std::vector<std::string> names;
  for (const std::string& file : machines(kMachines / "corpus", {".golden"})) {
    names.push_back(fs::path(file).stem().string());
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Real, CorpusMachine, ::testing::ValuesIn(corpus_names()), test_name);

TEST(Difference, ShowsLines) {
  EXPECT_EQ(difference("a\nb\nc\n", "a\nx\nc\nd\n"), "    2 - b\n    2 + x\n    4 + d\n");
  EXPECT_EQ(difference("same\n", "same\n"), "");
}

}  // namespace
}  // namespace muster::test
