// SPDX-License-Identifier: BSD-3-Clause
// How a mutex's client looks before it sleeps, and when it is overdue, without threads or clocks.
#include "wait/parking.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace muster::test {
namespace {

TEST(Parking, LooksMoreAndMoreSeldomThenSleeps) {
  std::vector<unsigned> pauses;
  for (unsigned looks = 0; looks < 7; ++looks) pauses.push_back(Parking::pauses(looks));
  EXPECT_EQ((std::vector<unsigned>{1, 2, 4, 8, 16, 0, 0}), pauses);
}

TEST(Parking, IsOverdueAMillisecondAfterItWasFirstAsked) {
  for (const std::int64_t first_ns : {0, 2'000'000'000}) {
    Parking parking;
    for (const int passed_ns : {0, 500'000, 1'000'000}) {
      EXPECT_FALSE(parking.is_overdue(first_ns + passed_ns)) << passed_ns;
    }
    EXPECT_TRUE(parking.is_overdue(first_ns + 1'000'001));
  }
}

}  // namespace
}  // namespace muster::test
