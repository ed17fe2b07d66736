// SPDX-License-Identifier: BSD-3-Clause
// What tests of single commands share: running them, and a folder.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "program.hpp"

using Words = std::vector<std::string>;

inline std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

/// What it prints; it has to succeed.
inline std::string muster(const Words& words) {
  const Outcome outcome = run_muster(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.out;
}

/// Under load no round of measuring this machine may have been steady: that is what it says, and no
/// matter of the code.
inline Outcome run_muster_when_steady(const Words& words) {
  Outcome outcome;
  for (int attempt = 0; attempt < 5; ++attempt) {
    outcome = run_muster(words);
    if (outcome.err.find("changed its speed") == std::string::npos) break;
  }
  return outcome;
}

class CommandTest : public testing::Test {
 protected:
  CommandTest() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~CommandTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};
