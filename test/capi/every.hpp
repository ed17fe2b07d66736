// SPDX-License-Identifier: BSD-3-Clause
// Barriers of every algorithm.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "capi_subject.hpp"

namespace muster::test {

inline constexpr std::int64_t ms = 1'000'000;

inline std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const char* const* name = muster_barrier_names(); *name != nullptr; ++name) {
    names.emplace_back(*name);
  }
  return names;
}

/// How an instance of a test is called.
inline std::string identifier(const testing::TestParamInfo<std::string>& instance) {
  std::string name = instance.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// Rounds of what is about waiting, not about an algorithm, go through all of these.
inline const char* algorithm(unsigned round) {
  return muster_barrier_names()[round % all_names().size()];
}
inline const char* policy(unsigned round) {
  constexpr const char* all[] = {"yield", "sleep", "auto"};
  return all[round % 3];
}

inline muster_options shared_options(unsigned participants, const char* algorithm = nullptr,
                                     const char* wait = nullptr) {
  muster_options options = options_for(participants, algorithm);
  options.flags = MUSTER_SHARED;
  options.wait = wait;
  return options;
}

}  // namespace muster::test
