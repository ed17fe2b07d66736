// SPDX-License-Identifier: BSD-3-Clause
#include "cli/output.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "machine/error.hpp"

namespace muster {
namespace {

TEST(WriteFile, WholeOrNotAtAll) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / ("muster-write-" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  write_file(directory / "a", "one");
  write_file(directory / "a", "two");
  std::ifstream file(directory / "a");
  std::string text;
  file >> text;
  EXPECT_EQ(text, "two");
  EXPECT_THROW(write_file(directory / "none" / "a", "x"), Error);
  std::filesystem::create_directories(directory / "b");  // a folder cannot be replaced
  EXPECT_THROW(write_file(directory / "b", "x"), Error);
  unsigned entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    static_cast<void>(entry);
    ++entries;
  }
  EXPECT_EQ(entries, 2U) << "something unfinished is left";
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace muster
