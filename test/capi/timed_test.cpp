// SPDX-License-Identifier: BSD-3-Clause
// What can go wrong while threads wait: late ones, timeouts that race, one rank twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "every.hpp"

namespace muster::test {
namespace {

using testing::HasSubstr;

class Timeout : public testing::TestWithParam<std::string> {};

TEST_P(Timeout, BreaksTheBarrierForAll) {
  const HangGuard guard(60);
  for (const char* wait : {"auto", "sleep", "yield"}) {
    for (const unsigned impatient : {0U, 1U, 3U}) {
      muster_options options = options_for(5, GetParam().c_str());
      options.wait = wait;
      const CapiSubject barrier(options);
      std::atomic<unsigned> timed_out{0};
      std::atomic<unsigned> broken{0};
      // Rank 4 does not come until it is too late; of the others only one is impatient.
      run_threads(4, [&](unsigned rank) {
        const int status = rank == impatient
                               ? muster_barrier_timedwait(barrier.handle(), rank, 15 * ms)
                               : muster_barrier_wait(barrier.handle(), rank);
        if (status == MUSTER_ETIMEDOUT) {
          EXPECT_EQ(rank, impatient);
          EXPECT_THAT(muster_last_error(), HasSubstr(" 4 did not arrive in time"));
          timed_out.fetch_add(1);
        } else {
          EXPECT_EQ(status, MUSTER_EBROKEN) << "rank " << rank;
          EXPECT_THAT(muster_last_error(), HasSubstr("rank " + std::to_string(impatient)));
          broken.fetch_add(1);
        }
      });
      EXPECT_EQ(timed_out.load(), 1U);
      EXPECT_EQ(broken.load(), 3U);
      EXPECT_EQ(muster_barrier_wait(barrier.handle(), 4), MUSTER_EBROKEN) << "the late one";
      EXPECT_EQ(muster_barrier_timedwait(barrier.handle(), impatient, ms), MUSTER_EBROKEN)
          << "it stays broken";
      unsigned rank = 99;
      EXPECT_EQ(muster_barrier_blame(barrier.handle(), &rank), MUSTER_ETIMEDOUT);
      EXPECT_EQ(rank, impatient);
    }
  }
}

// Timeouts that fall together with the last arrival: each wait succeeds or fails, nobody hangs, and
// once one has failed all later ones do.
TEST_P(Timeout, RacesWithTheLastArrival) {
  const HangGuard guard(60);
  Random random(case_seed());
  unsigned successes = 0;
  unsigned failures = 0;
  for (unsigned round = 0; round < rounds(150); ++round) {
    const CapiSubject barrier(options_for(3, GetParam().c_str()));
    int statuses[3] = {};
    const unsigned late_us = random.below(400);
    run_threads(3, [&](unsigned rank) {
      if (rank == 2) usleep(late_us);
      statuses[rank] = muster_barrier_timedwait(barrier.handle(), rank, 250'000);
    });
    for (const int status : statuses) {
      EXPECT_THAT(status, testing::AnyOf(MUSTER_OK, MUSTER_ETIMEDOUT, MUSTER_EBROKEN));
      (status == MUSTER_OK ? successes : failures) += 1;
    }
    const int blame = muster_barrier_blame(barrier.handle(), nullptr);
    const bool all_well =
        statuses[0] == MUSTER_OK && statuses[1] == MUSTER_OK && statuses[2] == MUSTER_OK;
    EXPECT_EQ(blame == MUSTER_OK, all_well) << replay_command();
    if (!all_well) {
      EXPECT_EQ(muster_barrier_wait(barrier.handle(), 0), MUSTER_EBROKEN);
    }
  }
  EXPECT_GT(successes + failures, 0U);
}

// Who gives up may destroy it at once, while another, whose progress hook shows that it is inside,
// is still being told.
TEST_P(Timeout, MayBeFollowedByDestroy) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < rounds(60); ++round) {
    std::atomic<bool> inside{false};
    muster_options options = options_for(3, GetParam().c_str());
    options.context = &inside;
    options.progress = [](void* context) {
      static_cast<std::atomic<bool>*>(context)->store(true);
      return 0;
    };
    muster_barrier* barrier = nullptr;
    ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK);
    run_threads(2, [&](unsigned rank) {
      if (rank == 1) {
        EXPECT_EQ(muster_barrier_wait(barrier, 1), MUSTER_EBROKEN);
        EXPECT_THAT(muster_last_error(), HasSubstr("rank 0"));
        return;
      }
      while (!inside) std::this_thread::yield();
      EXPECT_EQ(muster_barrier_timedwait(barrier, 0, ms / 4), MUSTER_ETIMEDOUT);
      muster_barrier_destroy(barrier);
    });
  }
}

// Of some algorithms the last to come waits for steps of the others, too.
TEST_P(Timeout, IsForThoseWhoHaveNotCome) {
  const HangGuard guard(60);
  constexpr unsigned others = 4;
  for (const char* map_by : {"", "core"}) {
    std::atomic<unsigned> inside{0};
    muster_options options = options_for(others + 1, GetParam().c_str());
    if (*map_by != '\0') {
      options.topology = "package:2 numa:2 core:2 pu:1";
      options.map_by = map_by;
    }
    options.context = &inside;
    options.progress = [](void* context) {
      thread_local bool told = false;
      if (!std::exchange(told, true)) static_cast<std::atomic<unsigned>*>(context)->fetch_add(1);
      return 0;
    };
    const CapiSubject barrier(options);
    run_threads(others + 1, [&](unsigned rank) {
      while (rank == others && inside < others) usleep(100);
      const int status = rank == others ? muster_barrier_timedwait(barrier.handle(), rank, 0)
                                        : muster_barrier_wait(barrier.handle(), rank);
      EXPECT_EQ(status, MUSTER_OK) << muster_last_error();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, Timeout, testing::ValuesIn(all_names()), identifier);

TEST(TimedWait, TakesAnyTimeout) {
  const HangGuard guard(60);
  for (const std::int64_t timeout : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN}) {
    const CapiSubject barrier(options_for(2));
    EXPECT_EQ(muster_barrier_timedwait(barrier.handle(), 0, timeout), MUSTER_ETIMEDOUT);
  }
  const CapiSubject barrier(options_for(2));
  run_threads(2, [&](unsigned rank) {
    usleep(rank * 3'000);
    EXPECT_EQ(muster_barrier_timedwait(barrier.handle(), rank, INT64_MAX), MUSTER_OK);
  });
}

TEST(TimedWait, LimitsNoLaterOne) {
  const HangGuard guard(60);
  muster_options options = options_for(2);
  options.flags = MUSTER_SPLIT;
  const CapiSubject barrier(options);
  run_threads(2, [&](unsigned rank) {
    EXPECT_EQ(muster_barrier_timedwait(barrier.handle(), rank, 2'000 * ms), MUSTER_OK);
    if (rank == 1) usleep(2'200'000);
    EXPECT_EQ(muster_barrier_arrive(barrier.handle(), rank), MUSTER_OK);
    EXPECT_EQ(muster_barrier_depart(barrier.handle(), rank), MUSTER_OK) << muster_last_error();
  });
}

TEST(SameRank, InTwoThreadsIsBusy) {
  const HangGuard guard(60);
  const CapiSubject barrier(options_for(2, "mcs"));
  const auto both_once = [&] {
    run_threads(2, [&](unsigned rank) {
      EXPECT_EQ(muster_barrier_wait(barrier.handle(), rank), MUSTER_OK);
    });
  };
  both_once();
  std::atomic<bool> inside{false};
  std::thread first([&] {
    inside = true;
    EXPECT_EQ(muster_barrier_wait(barrier.handle(), 0), MUSTER_OK);
  });
  while (!inside) std::this_thread::yield();
  usleep(20'000);
  EXPECT_EQ(muster_barrier_wait(barrier.handle(), 0), MUSTER_EBUSY);
  // Nor may a second one with a deadline disturb the first, which has none.
  EXPECT_EQ(muster_barrier_timedwait(barrier.handle(), 0, 1), MUSTER_EBUSY);
  EXPECT_EQ(muster_barrier_wait(barrier.handle(), 1), MUSTER_OK);
  first.join();
  both_once();
}

}  // namespace
}  // namespace muster::test
