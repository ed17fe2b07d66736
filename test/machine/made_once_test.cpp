// SPDX-License-Identifier: BSD-3-Clause
#include "machine/made_once.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace muster::test {
namespace {

// Static, as what is never destroyed has to be.
TEST(Remembered, KeepsNoMoreThanItMay) {
  static Remembered<int, int, 4> values;
  int made = 0;
  for (int round = 0; round < 2; ++round) {
    for (int n = 0; n < 6; ++n) {
      EXPECT_EQ(values.of(n, [&] { return ++made, 2 * n; }), 2 * n);
    }
  }
  EXPECT_EQ(made, 6 + 2);
}

TEST(Remembered, ServesSeveralThreadsAtOnce) {
  static Remembered<int, int, ~0U> values;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int n = 0; n < 2'000; ++n) {
        if (values.of(n % 100, [&] { return 3 * (n % 100); }) != 3 * (n % 100)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace muster::test
