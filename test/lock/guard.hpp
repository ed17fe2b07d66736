// SPDX-License-Identifier: BSD-3-Clause
// Whichever test hangs is told, with a stack, in a program of which one source includes this.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "harness.hpp"

namespace muster::test {

class GuardsEach : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& /*test*/) override { guard_.emplace(60); }
  void OnTestEnd(const testing::TestInfo& /*test*/) override { guard_.reset(); }

  std::optional<HangGuard> guard_;
};

inline const bool guards_each = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new GuardsEach);  // which deletes it
  return true;
}();

}  // namespace muster::test
