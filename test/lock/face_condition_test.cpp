// SPDX-License-Identifier: BSD-3-Clause
// Conditions of the C ABI's locks and the C++ face's.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <thread>
#include <vector>

#include "harness.hpp"
#include "muster/lock.hpp"

namespace muster::test {
namespace {

TEST(LockFace, ConditionsWaitForAPredicate) {
  const HangGuard guard(60);
  muster::server server;
  muster::lock lock("rcl", &server);
  muster::condition changed(lock);
  int level = 0;
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) {
      lock.execute([&] {
        ++level;
        changed.notify_all();
      });
    }
  });
  lock.execute([&] { changed.wait([&] { return level == 100; }); });
  producer.join();
  const bool in_time = lock.execute(
      [&] { return changed.wait_for(std::chrono::milliseconds(5), [&] { return level == 101; }); });
  EXPECT_FALSE(in_time);
  EXPECT_EQ(MUSTER_EINVAL, muster_cond_wait(nullptr));
  EXPECT_THROW(changed.wait(), muster::error) << "outside of a section";
}

TEST(LockFace, AnyDurationIsWaitedFor) {
  using Seconds = std::chrono::duration<double>;
  using Hours = std::chrono::duration<float, std::ratio<3600>>;
  const HangGuard guard(60);
  muster::lock lock("mcs");
  muster::condition changed(lock);
  bool ready = false;
  /// Whether the one that waits has been told, and not the time been over.
  const auto is_told = [&](auto wait) {
    ready = false;
    bool waiting = false;
    bool told = false;
    std::thread waiter([&] {
      lock.execute([&] {
        waiting = true;
        told = wait();
      });
    });
    while (!lock.execute([&] { return waiting; })) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // a time that is over is over now
    lock.execute([&] {
      ready = true;
      changed.notify_all();
    });
    waiter.join();
    return told;
  };
  const auto holds = [&] { return ready; };
  const auto long_enough = [&](auto timeout) {
    const double seconds = Seconds(timeout).count();
    EXPECT_TRUE(is_told([&] { return changed.wait_for(timeout, holds); })) << seconds;
    EXPECT_TRUE(is_told([&] {
      while (!ready) {
        if (!changed.wait_for(timeout)) return false;
      }
      return true;
    })) << seconds;
  };
  long_enough(std::chrono::hours(1));
  long_enough(std::chrono::hours::max());
  long_enough(std::chrono::seconds::max());
  long_enough(std::chrono::nanoseconds::max());
  long_enough(Seconds(1e9));
  long_enough(Seconds(std::numeric_limits<double>::infinity()));
  long_enough(Hours::max());
  const auto over = [&](auto timeout) {
    ready = false;
    return lock.execute([&] {
      // The first may end by itself.
      while (changed.wait_for(timeout)) continue;
      return !changed.wait_for(timeout, holds);
    });
  };
  EXPECT_TRUE(over(std::chrono::hours::min()));
  EXPECT_TRUE(over(std::chrono::nanoseconds::min()));
  EXPECT_TRUE(over(std::chrono::milliseconds(-1)));
  EXPECT_TRUE(over(std::chrono::milliseconds(5)));
  EXPECT_TRUE(over(Seconds(0.005)));
  EXPECT_TRUE(over(Seconds(-std::numeric_limits<double>::infinity())));
  EXPECT_TRUE(over(Seconds(std::numeric_limits<double>::quiet_NaN())));
}

// One that is too late for the clock would be early where the sum wraps around, or anything at all.
TEST(LockFace, ADeadlineCanBeMadeOfAnyDuration) {
  using std::chrono::nanoseconds;
  using Seconds = std::chrono::duration<double>;
  const auto left = nanoseconds::max() - std::chrono::steady_clock::now().time_since_epoch();
  const auto is_long = [&](auto timeout) {
    const nanoseconds bounded = detail::bounded(timeout);
    EXPECT_LE(bounded, left) << Seconds(timeout).count();
    EXPECT_GE(bounded, std::chrono::hours(24 * 365 * 100)) << Seconds(timeout).count();
  };
  is_long(std::chrono::hours::max());
  is_long(std::chrono::seconds::max());
  is_long(nanoseconds::max());
  is_long(nanoseconds::max() - nanoseconds(1));
  is_long(Seconds(8e9));
  is_long(Seconds(std::numeric_limits<double>::max()));
  is_long(Seconds(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(nanoseconds(1), detail::bounded(nanoseconds(1)));
  EXPECT_EQ(std::chrono::hours(24 * 100), detail::bounded(std::chrono::hours(24 * 100)));
}

// A broadcast would wake all. A signal may do so, too, for who is about to wait, but seldom does.
TEST(LockFace, ASignalWakesOne) {
  const HangGuard guard(60);
  muster::lock lock("rcl");
  bool one_was_woken = false;
  for (int attempt = 0; attempt < 5 && !one_was_woken; ++attempt) {
    muster::condition changed(lock);
    int waiting = 0;
    int woken = 0;
    const auto is = [&](const int& count, int wanted) {
      return lock.execute([&] { return count == wanted; });
    };
    std::vector<std::thread> waiters;
    for (int i = 0; i < 3; ++i) {
      waiters.emplace_back([&] {
        lock.execute([&] {
          ++waiting;
          changed.wait();
          ++woken;
        });
      });
    }
    while (!is(waiting, 3)) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // all have given the lock up only
    lock.execute([&] { changed.notify_one(); });
    while (is(woken, 0)) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    one_was_woken = is(woken, 1);
    while (!is(woken, 3)) {
      lock.execute([&] { changed.notify_one(); });
      std::this_thread::yield();
    }
    for (std::thread& waiter : waiters) waiter.join();
  }
  EXPECT_TRUE(one_was_woken);
}

TEST(LockFace, ABroadcastWakesAll) {
  constexpr int waiters = 3;
  const HangGuard guard(60, "a broadcast that is to wake all");
  for (const char* const kind : {"auto", "rcl", "mcs"}) {
    muster::lock lock(kind);
    muster::condition changed(lock);
    int waiting = 0;
    int told = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < waiters; ++i) {
      threads.emplace_back([&] {
        lock.execute([&] {
          ++waiting;
          changed.wait();
          ++told;
        });
      });
    }
    while (lock.execute([&] { return waiting; }) < waiters) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // all have given the lock up only
    lock.execute([&] { changed.notify_all(); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(waiters, told) << kind;
  }
}

// So programs wait for a deadline; it may be over before they look.
TEST(LockAbi, ATimeThatIsOverGivesTheLockUpAllTheSame) {
  const HangGuard guard(60);
  for (const char* const kind : {"mcs", "rcl", "auto"}) {
    for (const std::int64_t timeout_ns : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN}) {
      muster::lock lock(kind);
      muster_cond* changed = nullptr;
      bool ready = false;
      int status = MUSTER_OK;
      ASSERT_EQ(MUSTER_OK, muster_cond_create(&changed, lock.native_handle()));
      std::atomic<bool> waiting{false};
      std::thread other([&] {
        while (!waiting) std::this_thread::yield();
        lock.execute([&] { ready = true; });
      });
      lock.execute([&] {
        waiting = true;
        do {
          status = muster_cond_timedwait(changed, timeout_ns);
        } while (!ready && status == MUSTER_ETIMEDOUT);
      });
      other.join();
      EXPECT_EQ(MUSTER_ETIMEDOUT, status) << kind << " " << timeout_ns;
      muster_cond_destroy(changed);
    }
  }
}

}  // namespace
}  // namespace muster::test
