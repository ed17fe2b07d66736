// SPDX-License-Identifier: BSD-3-Clause
// What README.md and doc/ publish of the model's locks is what it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "command.hpp"

namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string with_digits(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

/// Throughput, in millions of sections a second, of a lock of 63 clients on the server of [K22].
double mops_of_63(const std::string& lock, const Words& more = {}) {
  Words words{"sim",       "lock", "--machine", "kunpeng920-2s", "--locks", lock,
              "--threads", "63",   "--pattern", "sequential",    "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const json result = json::parse(muster(words));
  return result.at("results").at(0).at("throughput_ops_s").get<double>() / 1e6;
}

// The papers' point, which README and doc/results.md publish as predictions.
TEST(Published, WhatIsSaidOfRclOnManyCoresIsWhatTheProgramPredicts) {
  const std::filesystem::path tree(MUSTER_SOURCE_DIR);
  std::istringstream lines(read(tree / "doc/results.md"));
  const auto cells_of = [](const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, '|');) {
      std::erase_if(cell, [](char c) { return c == ' ' || c == '*' || c == '`'; });
      cells.push_back(cell);
    }
    return cells;
  };
  std::vector<std::string> head;
  std::vector<std::string> published;
  for (std::string line; std::getline(lines, line) && published.empty();) {
    if (line.starts_with("| clients | `rcl` |")) head = cells_of(line);
    if (!head.empty() && line.starts_with("| 63 |")) published = cells_of(line);
  }
  ASSERT_EQ(published.size(), head.size());
  std::map<std::string, double> mops;
  for (const char* lock : {"rcl", "rcl-batch", "flat-combining", "mcs"}) {
    const auto column = std::find(head.begin(), head.end(), lock) - head.begin();
    ASSERT_LT(static_cast<std::size_t>(column), head.size()) << lock;
    mops[lock] = mops_of_63(lock);
    EXPECT_EQ(published[static_cast<std::size_t>(column)], with_digits(mops[lock], 1)) << lock;
  }
  const std::string readme = read(tree / "README.md");
  EXPECT_THAT(readme, HasSubstr("`rcl` does " + with_digits(mops["rcl"], 0) +
                                " million sections a second, flat combining " +
                                with_digits(mops["flat-combining"], 0) + ", an MCS lock " +
                                with_digits(mops["mcs"], 1) + "."));
  EXPECT_THAT(readme, HasSubstr("atomics that are not LL/SC an MCS lock does " +
                                with_digits(mops_of_63("mcs", {"--without", "ll-sc"}), 1)));
}

}  // namespace
