// SPDX-License-Identifier: BSD-3-Clause
// Conditions of the C ABI's locks and the C++ face's.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ratio>
#include <thread>
#include <vector>

#include "harness.hpp"
#include "muster/lock.hpp"

namespace muster::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t hour_ns = 3'600'000'000'000;

TEST(LockFace, AnyDurationIsWaitedFor) {
  using Seconds = std::chrono::duration<double>;
  using Hours = std::chrono::duration<float, std::ratio<3600>>;
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

/// Calls test(lock, its name) with a new lock of each kind whose sections may wait.
template <class Test>
void with_each_kind(Test&& test) {
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    muster::lock lock(*kind);
    muster_cond* condition = nullptr;
    const int status = muster_cond_create(&condition, lock.native_handle());
    if (status == MUSTER_ENOTSUP) continue;
    ASSERT_EQ(MUSTER_OK, status) << *kind;
    test(lock, condition, *kind);
    muster_cond_destroy(condition);
  }
}

/// Threads that wait for a condition, each once those before it do.
class Waiters {
 public:
  Waiters(muster::lock& lock, muster_cond* condition) : lock_(lock), condition_(condition) {}
  ~Waiters() { join(); }
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;

  /// `timeout_ns` below 0: for ever.
  void add(std::int64_t timeout_ns) {
    bool waits = false;
    threads_.emplace_back([this, timeout_ns, &waits] {
      lock_.execute([&] {
        waits = true;
        const std::size_t mine = status_.size();
        status_.push_back(-1);
        const int status = timeout_ns < 0 ? muster_cond_wait(condition_)
                                          : muster_cond_timedwait(condition_, timeout_ns);
        status_[mine] = status;
      });
    });
    while (!lock_.execute([&] { return waits; })) std::this_thread::yield();
  }
  int released() {
    return lock_.execute([&] {
      return static_cast<int>(status_.size() - std::count(status_.begin(), status_.end(), -1));
    });
  }
  /// What their waits have returned, in the order in which they came.
  std::vector<int> join() {
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
    return status_;
  }

 private:
  muster::lock& lock_;
  muster_cond* condition_;
  std::vector<int> status_;
  std::vector<std::thread> threads_;
};

// The other one's time is over: it is not to say that it was signalled, too.
TEST(LockAbi, OfTwoThatWaitForATimeASignalReleasesTheFirst) {
  with_each_kind([](muster::lock& lock, muster_cond* condition, const char* kind) {
    bool in_time = false;
    for (std::int64_t timeout_ns = 50'000'000; !in_time; timeout_ns *= 2) {
      const Clock::time_point end = Clock::now() + std::chrono::nanoseconds(timeout_ns);
      Waiters waiters(lock, condition);
      waiters.add(timeout_ns);
      waiters.add(timeout_ns);
      EXPECT_EQ(MUSTER_OK, muster_cond_signal(condition));
      in_time = Clock::now() < end;
      const std::vector<int> status = waiters.join();
      if (in_time) {
        EXPECT_EQ((std::vector<int>{MUSTER_OK, MUSTER_ETIMEDOUT}), status) << kind;
      }
    }
  });
}

TEST(LockAbi, ABroadcastReleasesAllThatWaitForATimeOrForEver) {
  with_each_kind([](muster::lock& lock, muster_cond* condition, const char* kind) {
    Waiters waiters(lock, condition);
    for (const std::int64_t timeout_ns : {hour_ns, std::int64_t{-1}, INT64_MAX - 1}) {
      waiters.add(timeout_ns);
    }
    EXPECT_EQ(MUSTER_OK, muster_cond_broadcast(condition));
    EXPECT_EQ((std::vector<int>{MUSTER_OK, MUSTER_OK, MUSTER_OK}), waiters.join()) << kind;
  });
}

// Neither who no longer waits, nor who comes later, takes the signal that another one waits for.
TEST(LockAbi, ASignalReleasesOneThatWaitsWhenItComes) {
  with_each_kind([](muster::lock& lock, muster_cond* condition, const char* kind) {
    EXPECT_EQ(MUSTER_OK, muster_cond_signal(condition)) << "nobody waits: it is gone";
    Waiters waiters(lock, condition);
    int impatients = MUSTER_OK;
    int latecomers = MUSTER_OK;
    std::atomic<bool> waits{false};
    std::thread impatient([&] {
      lock.execute([&] {
        waits = true;
        impatients = muster_cond_timedwait(condition, 1'000'000);
      });
    });
    while (!waits) std::this_thread::yield();
    for (int i = 0; i < 3; ++i) waiters.add(-1);
    impatient.join();
    lock.execute([&] {
      muster_cond_signal(condition);
      latecomers = muster_cond_timedwait(condition, 1'000'000);
    });
    for (int signals = 1; signals <= 3; ++signals) {
      if (signals > 1) muster_cond_signal(condition);
      while (waiters.released() < signals) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // in which another one would be
      EXPECT_EQ(signals, waiters.released()) << kind;
    }
    EXPECT_EQ(std::vector<int>(3, MUSTER_OK), waiters.join()) << kind;
    EXPECT_EQ(MUSTER_ETIMEDOUT, impatients) << kind;
    EXPECT_EQ(MUSTER_ETIMEDOUT, latecomers) << kind;
  });
}

TEST(LockAbi, AWaitForATimeLastsSoLong) {
  static constexpr std::chrono::nanoseconds timeout(3'000'000);
  with_each_kind([](muster::lock& lock, muster_cond* condition, const char* kind) {
    muster::condition changed(lock);
    const auto lasts = [&](const char* what, auto wait) {
      EXPECT_TRUE(in_a_quiet_moment([&] {
        const Clock::time_point before = Clock::now();
        EXPECT_TRUE(lock.execute(wait)) << what << " of " << kind;
        const Clock::duration took = Clock::now() - before;
        EXPECT_GE(took, timeout) << what << " of " << kind;
        return took <= 100 * timeout;
      })) << what
          << " of " << kind;
    };
    lasts("timedwait",
          [&] { return muster_cond_timedwait(condition, timeout.count()) == MUSTER_ETIMEDOUT; });
    lasts("wait_for", [&] { return !changed.wait_for(std::chrono::milliseconds(3)); });
    lasts("wait_for seconds",
          [&] { return !changed.wait_for(std::chrono::duration<double>(0.003)); });
    lasts("wait_for, and a predicate",
          [&] { return !changed.wait_for(timeout, [] { return false; }); });
  });
}

// It would give up one lock, and wait with the other one taken.
TEST(LockAbi, AConditionOfALockAroundIsNotWaitedFor) {
  with_each_kind([](muster::lock& outer, muster_cond* outers, const char* kind) {
    with_each_kind([&](muster::lock& inner, muster_cond* inners, const char* inner_kind) {
      EXPECT_EQ(MUSTER_EINVAL, muster_cond_wait(outers)) << "outside of a section of " << kind;
      int refused = MUSTER_OK;
      int refused_for_a_time = MUSTER_OK;
      int innermost = MUSTER_OK;
      int afterwards = MUSTER_OK;
      outer.execute([&] {
        inner.execute([&] {
          refused_for_a_time = muster_cond_timedwait(outers, 1000);
          refused = muster_cond_wait(outers);
          innermost = muster_cond_timedwait(inners, 1000);
        });
        afterwards = muster_cond_timedwait(outers, 1000);
      });
      EXPECT_EQ(MUSTER_EINVAL, refused) << inner_kind << " in " << kind;
      EXPECT_EQ(MUSTER_EINVAL, refused_for_a_time) << inner_kind << " in " << kind;
      EXPECT_EQ(MUSTER_ETIMEDOUT, innermost) << inner_kind << " in " << kind;
      EXPECT_EQ(MUSTER_ETIMEDOUT, afterwards) << inner_kind << " in " << kind;
    });
  });
}

// So programs wait for a deadline; it may be over before they look.
TEST(LockAbi, ATimeThatIsOverGivesTheLockUpAllTheSame) {
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
