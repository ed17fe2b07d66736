// SPDX-License-Identifier: BSD-3-Clause
// How waiters learn, without threads or clocks: an imagined machine tells them the time.
#include "wait/patience.hpp"

#include <gtest/gtest.h>

#include "machine/error.hpp"

namespace muster::test {
namespace {

constexpr std::int64_t us = 1'000;
constexpr std::int64_t ms = 1'000 * us;

using Next = Patience::Next;

/// One participant on an imagined machine.
struct Waiter {
  Patience patience;
  std::int64_t yield_takes_ns = us;
  std::int64_t wake_up_takes_ns = 30 * us;
  std::int64_t now = 1'000 * ms;
  YieldBan ban{0};
  unsigned slept = 0;
  unsigned bans = 0;
  std::int64_t awake_ns = 0;  ///< in the last wait

  /// One wait, which ends when `for_ns` are over; how long it took.
  std::int64_t wait(std::int64_t for_ns, bool others_run = false) {
    const std::int64_t start = now;
    unsigned yields = 0;
    bool sleeps = false;
    patience.begin(now, others_run);
    awake_ns = 0;
    while (now < start + for_ns) {
      const Next next = patience.next(now, std::exchange(yields, 0), ban.holds(now));
      if (next == Next::ban_yields) {
        ban = YieldBan::from(now);
        ++bans;
      }
      if (next == Next::spin) {
        now += us;
      } else if (next == Next::yield) {
        now += yield_takes_ns;
        ++yields;
      } else {
        awake_ns = now - start;
        sleeps = true;
        now = std::max(now, start + for_ns) + wake_up_takes_ns;
      }
    }
    if (!sleeps) awake_ns = now - start;
    slept += sleeps ? 1 : 0;
    patience.end(now, yields);
    return now - start;
  }
};

Waiter with_own_pu() { return {.patience = Patience(WaitPolicy::learning(2, 2, false))}; }
Waiter among(unsigned participants, unsigned cpus) {
  return {.patience = Patience(WaitPolicy::learning(participants, cpus, false))};
}

TEST(Patience, SpinsWhileThatPays) {
  Waiter waiter = with_own_pu();
  for (unsigned n = 0; n < 1'000; ++n) waiter.wait(100 * us);
  EXPECT_EQ(waiter.slept, 0U);
}

TEST(Patience, SpinsLessWhereItIsInVain) {
  Waiter waiter = with_own_pu();
  waiter.wait(2 * ms);
  EXPECT_EQ(waiter.awake_ns, 400 * us);
  std::int64_t awake = 0;
  for (unsigned n = 0; n < 100; ++n) {
    waiter.wait(2 * ms);
    awake += waiter.awake_ns;
  }
  EXPECT_EQ(waiter.slept, 101U);
  EXPECT_LT(awake, 200 * ms / 50) << "a fiftieth of the time";
}

TEST(Patience, SpinsAgainSoonAfterItWouldPay) {
  Waiter waiter = with_own_pu();
  for (unsigned n = 0; n < 100; ++n) waiter.wait(2 * ms);
  const std::int64_t start = waiter.now;
  waiter.slept = 0;
  while (waiter.now < start + 30 * ms) waiter.wait(50 * us);
  const unsigned while_learning = waiter.slept;
  EXPECT_GT(while_learning, 0U);
  for (unsigned n = 0; n < 1'000; ++n) waiter.wait(50 * us);
  EXPECT_EQ(waiter.slept, while_learning);
}

// Spinning keeps the very PU that the awaited one needs: it comes as soon as the waiter yields.
TEST(Patience, DoesNotSpinAgainstWhoSharesItsPu) {
  Waiter waiter = with_own_pu();
  const std::int64_t start = waiter.now;
  unsigned waits = 0;
  while (waiter.now < start + 1'000 * ms) {
    waiter.patience.begin(waiter.now, false);
    Next next = Next::spin;
    while ((next = waiter.patience.next(waiter.now, 0, false)) == Next::spin) waiter.now += us;
    EXPECT_EQ(next, Next::yield) << "both stay runnable, so that the scheduler parts them";
    waiter.now += 5 * us;
    waiter.patience.end(waiter.now, 1);
    ++waits;
  }
  EXPECT_GT(waits, 1'000'000 / 6U) << "hardly longer than the other's turn";
}

TEST(Patience, SpinsAgainWhenTheSchedulerHasPartedThem) {
  Waiter waiter = with_own_pu();
  for (unsigned n = 0; n < 100; ++n) {  // as above
    waiter.patience.begin(waiter.now, false);
    while (waiter.patience.next(waiter.now, 0, false) == Next::spin) waiter.now += us;
    waiter.now += 5 * us;
    waiter.patience.end(waiter.now, 1);
  }
  EXPECT_FALSE(waiter.patience.spins());
  const std::int64_t parted = waiter.now;
  while (waiter.now < parted + 30 * ms) waiter.wait(20 * us);
  EXPECT_TRUE(waiter.patience.spins());
}

TEST(Patience, YieldsAmongThoseWhoWait) {
  Waiter waiter = among(64, 2);
  waiter.yield_takes_ns = 60 * us;
  for (unsigned n = 0; n < 1'000; ++n) waiter.wait(100 * us);
  EXPECT_EQ(waiter.slept, 0U);
  EXPECT_EQ(waiter.bans, 0U);
}

TEST(Patience, ForgivesALostSliceNowAndThen) {
  Waiter waiter = among(4, 2);
  for (unsigned n = 0; n < 100; ++n) {
    for (unsigned i = 0; i < 1'000; ++i) waiter.wait(2 * us);
    waiter.yield_takes_ns = 40 * ms;
    waiter.wait(2 * us);
    waiter.yield_takes_ns = us;
  }
  EXPECT_EQ(waiter.bans, 0U);
}

TEST(Patience, BansYieldsThatStrangersTake) {
  Waiter waiter = among(4, 2);
  waiter.yield_takes_ns = 3 * ms;
  const std::int64_t start = waiter.now;
  std::int64_t lost = 0;
  while (waiter.now < start + 2'000 * ms)
    lost += std::max<std::int64_t>(0, waiter.wait(20 * us) - 50 * us);
  EXPECT_LT(lost, 2'000 * ms / 12);
  EXPECT_GT(waiter.bans, 5U);
}

TEST(Patience, YieldsAgainSoonAfterTheStrangersAreGone) {
  Waiter waiter = among(4, 2);
  waiter.yield_takes_ns = 3 * ms;
  const std::int64_t start = waiter.now;
  while (waiter.now < start + 2'000 * ms) waiter.wait(20 * us);
  const unsigned bans = waiter.bans;
  while (waiter.bans == bans && waiter.now < start + 3'000 * ms) waiter.wait(20 * us);
  waiter.yield_takes_ns = us;
  const std::int64_t gone = waiter.now;
  // A ban has just begun; it has slept through so many that it then awaits a probe.
  constexpr std::int64_t ban_and_probe = std::int64_t{20 + 20} << 20;
  while (waiter.now < gone + ban_and_probe) waiter.wait(20 * us);
  waiter.slept = 0;
  for (unsigned n = 0; n < 1'000; ++n) waiter.wait(20 * us);
  EXPECT_EQ(waiter.slept, 0U);
}

TEST(Patience, BansThemWhateverTheNumberOfParticipants) {
  Waiter waiter = among(64, 2);
  waiter.yield_takes_ns = 3 * ms;
  for (unsigned n = 0; n < 8; ++n) waiter.wait(20 * us);
  EXPECT_GT(waiter.bans, 0U);
}

TEST(Patience, SaysThatItStaysAwakeInFull) {
  Waiter yielding = among(4, 2);
  for (unsigned n = 0; n < 100; ++n) yielding.wait(20 * us);
  EXPECT_EQ(yielding.patience.stay(), Patience::Stay::whole);
  Waiter attending{.patience = Patience(WaitPolicy::learning(2, 2, true))};
  for (unsigned n = 0; n < 100; ++n) attending.wait(5 * ms);
  EXPECT_EQ(attending.patience.stay(), Patience::Stay::shorter);
  Waiter sleeping = among(4, 2);
  for (unsigned n = 0; n < 5; ++n) sleeping.wait(5 * ms);
  EXPECT_EQ(sleeping.patience.stay(), Patience::Stay::shorter);
  for (unsigned n = 0; n < 10; ++n) sleeping.wait(1'500 * us);
  EXPECT_EQ(sleeping.patience.stay(), Patience::Stay::none);
}

TEST(Patience, SleepsAtOnceWithinSomeTensOfMillisecondsWhereAllWaitsAreLong) {
  for (Waiter waiter : {with_own_pu(), among(4, 2)}) {
    const std::int64_t start = waiter.now;
    EXPECT_EQ(waiter.patience.stay(), Patience::Stay::whole);
    for (unsigned n = 0; n < 7; ++n) {
      EXPECT_NE(waiter.patience.stay(), Patience::Stay::none) << n;
      waiter.wait(2 * ms);
    }
    EXPECT_EQ(waiter.patience.stay(), Patience::Stay::none);
    EXPECT_LT(waiter.now - start, 15 * ms);
  }
}

TEST(Patience, OthersObserveABan) {
  Waiter first = among(4, 2);
  first.yield_takes_ns = 3 * ms;
  for (unsigned n = 0; n < 8; ++n) first.wait(20 * us);
  EXPECT_TRUE(first.ban.holds(first.now));
  Waiter second = among(4, 2);
  second.now = first.now;
  second.ban = first.ban;
  second.wait(20 * us);
  EXPECT_EQ(second.slept, 1U);
  EXPECT_EQ(second.awake_ns, 0);
}

TEST(Patience, YieldsForEverWhereItHasSomethingElseToDo) {
  Waiter waiter{.patience = Patience(WaitPolicy::learning(2, 2, true))};
  waiter.wait(50 * ms);
  EXPECT_EQ(waiter.slept, 0U);
}

TEST(Patience, OfAFixedPolicyLearnsNothing) {
  Waiter waiter{.patience = Patience(WaitPolicy::dedicated())};
  waiter.yield_takes_ns = 3 * ms;
  for (unsigned n = 0; n < 100; ++n) waiter.wait(2 * ms);
  EXPECT_EQ(waiter.bans, 0U);
  EXPECT_EQ(waiter.awake_ns, 200 * us + 3 * ms);
}

TEST(YieldBan, IsNoneAtFirst) {
  for (const std::int64_t now : {std::int64_t{0}, 5 * ms, (std::int64_t{1} << 50) - 50 * ms}) {
    EXPECT_FALSE(YieldBan(0).holds(now)) << now;
  }
}

TEST(YieldBan, EndsByItself) {
  constexpr std::int64_t wrap = std::int64_t{1} << 52;
  for (const std::int64_t now : {std::int64_t{0}, wrap, wrap - (20 << 20)}) {
    const YieldBan ban = YieldBan::from(now);
    EXPECT_TRUE(ban.holds(now)) << now;
    EXPECT_TRUE(ban.holds(now + 19 * ms)) << now;
    EXPECT_FALSE(ban.holds(now + 23 * ms)) << now;
  }
}

// Anything may stand in memory that several processes share.
TEST(YieldBan, OfGarbageEndsToo) {
  const std::int64_t end = std::int64_t{0x12345678} << 20;
  for (const Word word : {0x12345678U, 0xffffffffU, 0x80000000U, 0x7fffffffU}) {
    unsigned held = 0;
    for (int n = -1'000; n < 1'000; ++n) held += YieldBan(word).holds(end + n * ms) ? 1 : 0;
    EXPECT_EQ(held > 0, word == 0x12345678U) << word;
    EXPECT_LT(held, 25U) << word;
  }
}

TEST(WaitPolicyByName, KnowsItsNamesAndSaysThem) {
  for (const char* name :
       {"auto", "spin", "yield", "sleep", "spin-yield", "spin-yield-sleep", "yield-sleep"}) {
    EXPECT_EQ(WaitPolicy::by_name(name, 3, 2).name, name);
    EXPECT_EQ(WaitPolicy::by_name(name, 3, 2).learns, name == std::string("auto"));
  }
  try {
    WaitPolicy::by_name("nap", 1, 1);
    FAIL() << "it is no policy";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::unknown_name);
    EXPECT_NE(std::string(error.what()).find("yield-sleep"), std::string::npos);
  }
}

TEST(WaitPolicyByName, ChoosesByTheCpusThereAre) {
  EXPECT_EQ(WaitPolicy::by_name("auto", 2, 2).sharers, 1U);
  EXPECT_GT(WaitPolicy::by_name("auto", 2, 2).spin_ns, 0);
  EXPECT_EQ(WaitPolicy::by_name("auto", 3, 2).sharers, 2U);
  EXPECT_EQ(WaitPolicy::by_name("auto", 3, 2).spin_ns, 0);
  EXPECT_EQ(WaitPolicy::by_name("spin", 3, 2), WaitPolicy::spin());
  EXPECT_EQ(WaitPolicy::by_name("sleep", 1, 2), WaitPolicy::sleep());
}

}  // namespace
}  // namespace muster::test
