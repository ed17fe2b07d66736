// SPDX-License-Identifier: BSD-3-Clause
// Locks whose time is shared: who is ahead waits.
#include "delegation/share.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "delegation/condition.hpp"
#include "with_server.hpp"

namespace muster::test {
namespace {

using delegation::AnyLock;
using delegation::make_lock;
using delegation::Share;

constexpr std::int64_t ms = 1'000'000;
constexpr unsigned another_seat = delegation::seats_max - 1;

/// The calling thread and another one, who have both been seen just now.
struct TwoClients {
  TwoClients() { mine.seen_ns = other.seen_ns = now_ns(); }
  Share share{2 * ms};
  Share::Account& mine{share.mine()};
  Share::Account& other{share.of(another_seat)};
};

TEST(Share, WhoIsAheadOfThoseSeenLatelyWaits) {
  constexpr std::int64_t long_ago = 2 * Share::lately_ns;
  const struct {
    const char* who;
    std::int64_t mine, others, mine_since, others_since;
    bool goes;
    std::int64_t mine_then;
  } cases[] = {{"is ahead", 10 * ms, 0, 0, 0, false, 10 * ms},
               {"is ahead by no more than a slice", 10 * ms, 9 * ms, 0, 0, true, 10 * ms},
               {"is behind", 10 * ms, 1000 * ms, 0, 0, true, 10 * ms},
               {"is ahead of one that has gone", 10 * ms, 0, 0, long_ago, true, 10 * ms},
               {"comes back and has not saved", 0, 1000 * ms, long_ago, 0, true, 1000 * ms}};
  for (const auto& at : cases) {
    TwoClients two;
    two.mine.used_ns = at.mine;
    two.other.used_ns = at.others;
    two.mine.seen_ns = two.mine.seen_ns - at.mine_since;
    two.other.seen_ns = two.other.seen_ns - at.others_since;
    EXPECT_EQ(at.goes, two.share.await_turn(0)) << at.who;
    EXPECT_EQ(at.goes, two.share.await_turn(0)) << at.who << ", again";
    EXPECT_EQ(at.mine_then, two.mine.used_ns.load()) << at.who;
  }
}

TEST(Share, OthersWhoDoNotComeAreNotAwaitedForLonger) {
  TwoClients two;
  two.mine.used_ns = 7 * ms;
  const std::int64_t before = now_ns();
  EXPECT_TRUE(two.share.await_turn(WaitPolicy::forever));
  EXPECT_GE(now_ns() - before, 5 * ms);
  EXPECT_EQ(2 * ms, two.mine.used_ns.load()) << "it has paid";
}

TEST(Share, NobodyWaitsInASection) {
  TwoClients two;
  two.mine.used_ns = 1000 * ms;
  const auto lock = make_lock({.kind = "auto", .station = nullptr});
  bool waits = true;
  execute(*lock, [&] { waits = !two.share.await_turn(0); });
  EXPECT_FALSE(waits);
}

TEST(Share, IsOfTheTimeWithTheLock) {
  for (const char* kind : {"auto", "rcl", "mcs", "pthread-mutex"}) {
    const auto lock = make_lock({.kind = kind, .station = nullptr});
    lock->share_time(2 * ms);
    Share& share = *lock->share();
    delegation::Condition never(*lock);
    const auto used_by = [&](const auto& act) {
      const std::int64_t before = share.mine().used_ns;
      act();
      return share.mine().used_ns - before;
    };
    auto waits = [&] { never.wait(50 * ms); };
    auto works = [] { sleep_ms(10); };
    EXPECT_TRUE(in_a_quiet_moment([&] {
      return used_by([&] { lock->execute_by_share(section_of(waits)); }) < 40 * ms;
    })) << kind;
    EXPECT_GE(used_by([&] { lock->execute_by_share(section_of(works)); }), 10 * ms) << kind;
    EXPECT_GE(used_by([&] {
                lock->post_by_share(section_of(works));
                lock->execute_by_share(nothing);  // after it
              }),
              10 * ms)
        << kind;
    EXPECT_GE(used_by([&] {
                ASSERT_TRUE(lock->acquire(WaitPolicy::forever));
                sleep_ms(10);
                lock->release();
              }),
              10 * ms)
        << kind;
    const Share::Occupancy all = share.occupancy();
    EXPECT_GE(all.all_ns, 30 * ms) << kind;
    EXPECT_LE(all.all_ns, all.of_ns) << kind;
    EXPECT_EQ(all.clients, 1U) << kind;
    EXPECT_EQ(all.most_ns, all.all_ns) << kind;
    const std::string told = lock->explain();
    EXPECT_NE(told.find("\ntime in its sections: "), std::string::npos) << told;
    EXPECT_NE(told.find("\nmost and least of a thread: "), std::string::npos) << told;
  }
}

TEST(Share, WhoRecoversALockMayGiveItUp) {
  const auto lock = make_lock({.kind = "robust", .station = nullptr});
  lock->share_time(ms);
  unsigned waited = 0;
  auto waits = [&] { ++waited; };
  auto recovers = [&] { lock->unlocked(section_of(waits)); };
  lock->recover(section_of(recovers));
  EXPECT_EQ(1U, waited);
  EXPECT_GT(lock->share()->occupancy().all_ns, 0);
}

TEST(Share, IsToldByThread) {
  TwoClients two;
  two.share.begin(two.mine);
  sleep_ms(2);
  Share::end(two.share.turn());
  two.other.used_ns = 1000 * ms;  // as who comes back gets: nothing was executed
  EXPECT_EQ(two.share.occupancy().clients, 1U);
  two.share.begin(two.other);
  sleep_ms(6);
  Share::end(two.share.turn());
  const Share::Occupancy all = two.share.occupancy();
  EXPECT_EQ(all.clients, 2U);
  EXPECT_GE(all.least_ns, 2 * ms);
  EXPECT_GE(all.most_ns, 6 * ms);
  EXPECT_EQ(all.all_ns, all.least_ns + all.most_ns);
}

/// Time in sections of a thread whose sections take a millisecond, by that of one whose take 10 us.
double long_by_short(AnyLock& lock) {
  std::atomic<bool> ends{false};
  std::int64_t inside_ns[2] = {};
  run_threads(2, [&](unsigned thread) {
    const std::int64_t length_ns = thread == 0 ? ms : ms / 100;
    auto section = [&] {
      const std::int64_t begin = now_ns();
      std::int64_t now = begin;
      while ((now = now_ns()) - begin < length_ns) {
      }
      inside_ns[thread] += now - begin;
    };
    const std::int64_t end = now_ns() + 400 * ms;
    while (!ends) {
      if (lock.share() != nullptr) {
        lock.execute_by_share(section_of(section));
      } else {
        lock.execute(section_of(section));
      }
      if (now_ns() > end) ends = true;
    }
  });
  return static_cast<double>(inside_ns[0]) / static_cast<double>(inside_ns[1]);
}

TEST(Share, LongSectionsGetNoMoreTimeThanShortOnes) {
  EXPECT_TRUE(in_a_quiet_moment([] {
    const auto by_number = make_lock({.kind = "mcs", .station = nullptr});
    return long_by_short(*by_number) > 10;
  })) << "in turn";
  for (const char* kind : {"auto", "mcs", "cc-synch", "pthread-mutex"}) {
    double ratio = 0;
    EXPECT_TRUE(in_a_quiet_moment([&] {
      const auto lock = make_lock({.kind = kind, .station = nullptr});
      lock->share_time(2 * ms);
      ratio = long_by_short(*lock);
      return ratio < 1.5;
    })) << kind
        << ": " << ratio;
  }
}

}  // namespace
}  // namespace muster::test
