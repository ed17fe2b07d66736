// SPDX-License-Identifier: BSD-3-Clause
// Whichever test hangs is told, with a stack.
#include <gtest/gtest.h>

#include <optional>

#include "harness.hpp"

namespace muster::test {
namespace {

class GuardsEach : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& /*test*/) override { guard_.emplace(60); }
  void OnTestEnd(const testing::TestInfo& /*test*/) override { guard_.reset(); }

  std::optional<HangGuard> guard_;
};

[[maybe_unused]] const bool guarded = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new GuardsEach);  // which deletes it
  return true;
}();

}  // namespace
}  // namespace muster::test
