// SPDX-License-Identifier: BSD-3-Clause
// When clients and servers look for each other's stores: what they learn from it.
#include "delegation/first_look.hpp"

#include <gtest/gtest.h>

namespace muster::test {
namespace {

using delegation::FirstLook;

/// A writer that is so many pauses away, each time; who looks early finds it `looks` later.
double share_of_early_looks(FirstLook& first_look, unsigned writer_pauses, unsigned looks) {
  constexpr int warm_up = 2000;
  constexpr int counted = 8000;
  int early = 0;
  for (int i = 0; i < warm_up + counted; ++i) {
    const bool is_early = first_look.pauses() < writer_pauses;
    first_look.learn(is_early ? looks : 0);
    if (i >= warm_up && is_early) ++early;
  }
  return static_cast<double>(early) / counted;
}

TEST(FirstLook, WaitsForNothingBeforeItKnowsMore) { EXPECT_EQ(0U, FirstLook().pauses()); }

TEST(FirstLook, IsEarlyOnceInFive) {
  for (const unsigned writer : {1U, 7U, FirstLook::most_pauses - 1}) {
    for (const unsigned looks : {1U, 2U}) {
      FirstLook first_look;
      EXPECT_NEAR(0.2, share_of_early_looks(first_look, writer, looks), 0.01);
      EXPECT_NEAR(writer, first_look.pauses(), 1) << "its writer has been that far away for long";
    }
  }
}

TEST(FirstLook, FollowsAWriterThatBecomesQuicker) {
  FirstLook first_look;
  share_of_early_looks(first_look, 15, 1);
  share_of_early_looks(first_look, 3, 1);
  EXPECT_NEAR(3, first_look.pauses(), 1);
}

TEST(FirstLook, NeverWaitsLongForAWriterThatIsFarAway) {
  FirstLook first_look;
  EXPECT_EQ(1, share_of_early_looks(first_look, 1000, 1));
  EXPECT_EQ(FirstLook::most_pauses, first_look.pauses());
}

TEST(FirstLook, DoesNotWaitWhereThatBringsNothing) {
  FirstLook first_look;
  share_of_early_looks(first_look, 15, 1);
  EXPECT_LT(10U, first_look.pauses());
  share_of_early_looks(first_look, 1000, 3);  // with slow lines each look takes as long as many
  EXPECT_EQ(0U, first_look.pauses());
}

}  // namespace
}  // namespace muster::test
