// SPDX-License-Identifier: BSD-3-Clause
// What `--csv` prints, read again.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <istream>
#include <map>
#include <string>
#include <vector>

namespace muster::test {

/// A line's fields, quotes undone.
inline std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

/// What it has in each row, by the names in its first line; each row has all.
inline std::vector<std::map<std::string, std::string>> read_csv(std::istream& text) {
  std::string line;
  std::getline(text, line);
  const std::vector<std::string> names = csv_fields(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(text, line)) {
    const std::vector<std::string> fields = csv_fields(line);
    EXPECT_EQ(fields.size(), names.size()) << line;
    rows.emplace_back();
    for (std::size_t i = 0; i < std::min(fields.size(), names.size()); ++i) {
      EXPECT_TRUE(rows.back().emplace(names[i], fields[i]).second) << names[i] << " twice";
    }
  }
  return rows;
}

}  // namespace muster::test
