// SPDX-License-Identifier: BSD-3-Clause
// The C++ face. The same tests run over std::barrier: muster::barrier stands where it does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <muster/muster.hpp>
#include <thread>
#include <utility>

#include "harness.hpp"

void meet_in_one(muster::barrier<>& sync);
void meet_in_another(muster::barrier<>& sync);

namespace muster::test {
namespace {

using testing::HasSubstr;

struct Std {
  template <class... F>
  static auto make(std::ptrdiff_t n, F... f) {
    return std::make_unique<std::barrier<F...>>(n, f...);
  }
};

struct Ours {
  template <class... F>
  static auto make(std::ptrdiff_t n, F... f) {
    return std::make_unique<muster::barrier<F...>>(n, f...);
  }
};

template <class Library>
class InPlaceOfStdBarrier : public testing::Test {};

using Libraries = testing::Types<Std, Ours>;
TYPED_TEST_SUITE(InPlaceOfStdBarrier, Libraries);

TYPED_TEST(InPlaceOfStdBarrier, Synchronizes) {
  const HangGuard guard(60);
  constexpr unsigned participants = 4;
  const auto sync = TypeParam::make(participants);
  unsigned data[2][participants] = {};
  FirstFailure failure{};
  run_threads(participants, [&](unsigned rank) {
    Random random(case_seed() + rank);
    for (unsigned step = 1; step <= rounds(1500); ++step) {
      if (random.one_in(64)) usleep(random.below(50));
      data[step % 2][rank] = step;
      sync->arrive_and_wait();
      for (const unsigned seen : data[step % 2]) {
        if (seen != step) failure.report("left early in step " + std::to_string(step));
      }
    }
  });
  EXPECT_EQ(failure.text(), "") << replay_command();
}

TYPED_TEST(InPlaceOfStdBarrier, RunsTheCompletionOnceAnEpisode) {
  const HangGuard guard(60);
  unsigned completions = 0;
  const auto complete = [&]() noexcept { ++completions; };
  const auto sync = TypeParam::make(3, complete);
  FirstFailure failure{};
  run_threads(3, [&](unsigned) {
    for (unsigned step = 1; step <= rounds(500); ++step) {
      sync->arrive_and_wait();
      if (completions != step) failure.report("not once in step " + std::to_string(step));
      sync->arrive_and_wait();
      if (completions != step + 1) failure.report("not once in step " + std::to_string(step));
      ++step;
    }
  });
  EXPECT_EQ(failure.text(), "");
}

TYPED_TEST(InPlaceOfStdBarrier, ThreadsMayEndAndOthersTakeTheirPlaces) {
  const HangGuard guard(60);
  const auto sync = TypeParam::make(3);
  std::atomic<unsigned> passed{0};
  for (unsigned generation = 0; generation < 10; ++generation) {
    run_threads(3, [&](unsigned) {
      for (unsigned step = 0; step <= generation % 3; ++step) sync->arrive_and_wait();
      passed.fetch_add(1);
    });
  }
  EXPECT_EQ(passed.load(), 30U);
}

// Not asked of std::barrier: the one of GCC 12 looks at itself once more after its last notify.
TEST(Barrier, MayBeDestroyedByWhoLeavesFirst) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < rounds(100); ++round) {
    auto sync = std::make_unique<muster::barrier<>>(2);
    auto* const raw = sync.get();
    std::atomic<bool> first{true};
    run_threads(2, [&](unsigned) {
      raw->arrive_and_wait();
      if (first.exchange(false)) sync.reset();
    });
  }
}

TEST(Barrier, DeducesItsCompletion) {
  unsigned calls = 0;
  muster::barrier plain(1);
  muster::barrier with(1, [&] { ++calls; });
  plain.arrive_and_wait();
  with.arrive_and_wait();
  with.arrive_and_wait();
  EXPECT_EQ(calls, 2U);
  EXPECT_EQ(muster_barrier_participants(with.native_handle()), 1U);
  EXPECT_EQ(muster::barrier<>::max(), 65536);
}

TEST(Barrier, SaysHowManyParticipantsAreTooMany) {
  for (const std::ptrdiff_t many : {-1, 0, 65537, 1'000'000}) {
    try {
      const muster::barrier sync(many);
      FAIL() << many;
    } catch (const muster::error& refused) {
      EXPECT_EQ(refused.status(), MUSTER_EINVAL);
      EXPECT_THAT(refused.what(), HasSubstr(std::to_string(many) + " participants: 1 to 65536"));
    }
  }
}

TEST(Barrier, TakesRanksAndOptions) {
  const HangGuard guard(60);
  muster_options options;
  muster_options_init(&options);
  options.algorithm = "tournament";
  options.participants = 77;  // overwritten
  muster::barrier<> sync(3, {}, &options);
  EXPECT_THAT(sync.explain(), HasSubstr("tournament"));
  EXPECT_THAT(sync.explain(), testing::Not(HasSubstr(std::string(1, '\0'))));
  run_threads(3, [&](unsigned rank) {
    for (int i = 0; i < 100; ++i) sync.arrive_and_wait(rank);
  });
}

TEST(Barrier, SplitsIntoArriveAndWait) {
  const HangGuard guard(60);
  muster_options options;
  muster_options_init(&options);
  options.flags = MUSTER_SPLIT;
  unsigned completions = 0;
  muster::barrier sync(
      3, [&] { ++completions; }, &options);
  unsigned data[2][3] = {};
  FirstFailure failure{};
  run_threads(3, [&](unsigned rank) {
    for (unsigned step = 1; step <= rounds(500); ++step) {
      data[step % 2][rank] = step;
      auto token = sync.arrive();
      sync.wait(std::move(token));
      for (const unsigned seen : data[step % 2]) {
        if (seen != step) failure.report("left early in step " + std::to_string(step));
      }
    }
  });
  EXPECT_EQ(failure.text(), "");
  EXPECT_EQ(completions, rounds(500));
  muster::barrier whole(2);
  EXPECT_THROW((void)whole.arrive(0), muster::error);  // it exchanges flags: there are no halves
}

TEST(Barrier, ProgressGetsItsOwnContextBesideACompletion) {
  const HangGuard guard(60);
  std::atomic<unsigned> calls{0};
  muster_options options;
  muster_options_init(&options);
  options.context = &calls;
  options.progress = [](void* context) {
    static_cast<std::atomic<unsigned>*>(context)->fetch_add(1);
    return 0;
  };
  unsigned completions = 0;
  muster::barrier sync(
      2, [&] { ++completions; }, &options);
  std::thread other([&] { sync.arrive_and_wait(0); });
  while (calls.load() < 5) std::this_thread::yield();
  sync.arrive_and_wait(1);
  other.join();
  EXPECT_EQ(completions, 1U);
}

TEST(BarrierDeathTest, ACompletionThatThrowsTerminates) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        muster::barrier sync(1, [] { throw 1; });
        sync.arrive_and_wait();
      },
      "");
}

TEST(BarrierDeathTest, StaticOneLetsTheProgramEndWhileThreadsAreParkedThere) {
  EXPECT_EXIT(
      {
        muster_options options;
        muster_options_init(&options);
        options.flags = MUSTER_SPLIT;
        static muster::barrier<> sync(2, {}, &options);
        static std::atomic<bool> parked{false};
        std::thread([] {
          auto token = sync.arrive();
          parked = true;
          sync.wait(std::move(token));
        }).detach();
        while (!parked) sched_yield();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Barrier, ThrowsWhatWentWrong) {
  muster::barrier sync(2);
  try {
    sync.arrive_and_wait(2);
    FAIL() << "there is no rank 2";
  } catch (const muster::error& error) {
    EXPECT_EQ(error.status(), MUSTER_EINVAL);
    EXPECT_THAT(error.what(), HasSubstr("rank 2"));
  }
}

TEST(Barrier, KnowsAThreadInEveryLibrary) {
  const HangGuard guard(60);
  muster::barrier<> sync(2);
  run_threads(2, [&](unsigned) {
    for (int i = 0; i < 3; ++i) {
      meet_in_one(sync);
      meet_in_another(sync);
      sync.arrive_and_wait();
    }
  });
}

TEST(Barrier, RefusesMoreThreadsThanParticipants) {
  const HangGuard guard(60);
  muster::barrier sync(2);
  std::atomic<unsigned> refused{0};
  std::atomic<bool> leave{false};
  run_threads(3, [&](unsigned rank) {
    if (rank < 2) {
      sync.arrive_and_wait();
      while (!leave) std::this_thread::yield();  // both ranks stay claimed
      return;
    }
    usleep(20'000);
    for (;;) {  // whichever two came first have the ranks
      try {
        sync.arrive_and_wait();
        break;
      } catch (const std::logic_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("more threads"));
        refused.fetch_add(1);
        leave = true;
        break;
      }
    }
  });
  EXPECT_EQ(refused.load(), 1U);
}

// A thread remembers its ranks in many barriers, and forgets those of barriers that are gone.
TEST(Barrier, ManyInOneThread) {
  const HangGuard guard(60);
  for (unsigned round = 0; round < 300; ++round) {
    muster::barrier<> first(1);
    muster::barrier<> second(1);
    for (int i = 0; i < 3; ++i) {
      first.arrive_and_wait();
      second.arrive_and_wait();
    }
  }
  run_threads(3, [](unsigned) {
    std::vector<std::unique_ptr<muster::barrier<>>> all;
    for (unsigned i = 0; i < 100; ++i) {
      all.push_back(std::make_unique<muster::barrier<>>(1));
      all.back()->arrive_and_wait();
      if (i % 3 == 0) all.front().reset(new muster::barrier<>(1));
      all.front()->arrive_and_wait();
    }
  });
}

}  // namespace
}  // namespace muster::test
