// SPDX-License-Identifier: BSD-3-Clause
// When clients and servers look for each other's stores: what they learn from it.
#include "delegation/first_look.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "delegation/port.hpp"

namespace muster::test {
namespace {

using delegation::FirstLook;
using delegation::Port;

constexpr unsigned most = FirstLook::most_pauses;

/// A writer that is so many pauses away, each time.
double share_of_early_looks(FirstLook& first_look, unsigned writer_pauses) {
  constexpr int warm_up = 2000;
  constexpr int counted = 8000;
  int early = 0;
  for (int i = 0; i < warm_up + counted; ++i) {
    const bool is_early = first_look.pauses() < writer_pauses;
    if (is_early) {
      first_look.was_early();
    } else {
      first_look.was_in_time();
    }
    if (i >= warm_up && is_early) ++early;
  }
  return static_cast<double>(early) / counted;
}

TEST(FirstLook, WaitsForNothingBeforeItKnowsMore) { EXPECT_EQ(0U, FirstLook().pauses()); }

TEST(FirstLook, IsEarlyOnceInFive) {
  for (const unsigned writer : {1U, most / 2, most}) {
    FirstLook first_look;
    EXPECT_NEAR(0.2, share_of_early_looks(first_look, writer), 0.01);
    EXPECT_NEAR(writer, first_look.pauses(), 1) << "its writer has been that far away for long";
  }
}

TEST(FirstLook, FollowsAWriterThatBecomesQuickerOrSlower) {
  FirstLook first_look;
  for (const unsigned writer : {most - 1, 1U, most - 1}) {
    share_of_early_looks(first_look, writer);
    EXPECT_NEAR(writer, first_look.pauses(), 1);
  }
}

TEST(FirstLook, NeverWaitsLongForAWriterThatIsFarAway) {
  FirstLook first_look;
  EXPECT_EQ(1, share_of_early_looks(first_look, 1000));
  EXPECT_EQ(most, first_look.pauses());
}

TEST(FirstLook, DoesNotWaitWhereThatBringsNothing) {
  FirstLook first_look;
  share_of_early_looks(first_look, 1000);
  for (int i = 0; i < 1000; ++i) first_look.was_useless();
  EXPECT_EQ(0U, first_look.pauses());
}

TEST(FirstLook, OfAClientLearnsFromItsAnswers) {
  Port::Cell answer{};
  FirstLook first_look;
  for (int i = 0; i < 1000; ++i) first_look.was_early();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Port::poll_briefly(answer, first_look));
  EXPECT_EQ(0U, first_look.pauses()) << "each was there at once";

  std::atomic<bool> ends{false};
  std::thread server([&] {
    while (!ends) answer.value.store(0);
  });
  int late = 0;  // seldom where both share a CPU
  while (late < 100) {
    const unsigned before = first_look.pauses();
    answer.value.store(1);
    if (Port::poll_briefly(answer, first_look) && first_look.pauses() > before) ++late;
    if (before == most) first_look = FirstLook();
  }
  ends = true;
  server.join();
}

}  // namespace
}  // namespace muster::test
