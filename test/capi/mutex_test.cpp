// SPDX-License-Identifier: BSD-3-Clause
// muster::mutex as programs use it: alone, in line, with deadlines, in a fork's child, with the
// standard's guards. Its algorithm is explored by `muster check`.
#include "muster/mutex.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "harness.hpp"

namespace {

using namespace std::chrono_literals;
using muster::test::HangGuard;
using muster::test::run_threads;

constinit muster::mutex at_namespace_scope;

static_assert(sizeof(muster::mutex) == 28);
static_assert(std::is_trivially_destructible_v<muster::mutex>);
static_assert(!std::is_copy_constructible_v<muster::mutex>);

TEST(Mutex, IsConstantInitialised) {
  const std::scoped_lock guard(at_namespace_scope);
  EXPECT_FALSE(at_namespace_scope.try_lock());
}

TEST(Mutex, ExcludesAndLosesNothing) {
  const HangGuard guard(30);
  constexpr unsigned turns = 20'000;
  for (const unsigned threads : {2U, 4U, 16U}) {
    muster::mutex mutex;
    std::uint64_t count = 0;
    unsigned inside = 0;
    bool met = false;
    run_threads(threads, [&](unsigned) {
      for (unsigned turn = 0; turn < turns; ++turn) {
        const std::scoped_lock held(mutex);
        met = met || inside != 0;
        ++inside;
        ++count;
        if (turn % 1024 == 0) std::this_thread::yield();
        --inside;
      }
    });
    EXPECT_EQ(count, std::uint64_t{threads} * turns);
    EXPECT_FALSE(met);
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  }
}

/// Everybody who waits has to sleep: the holder does.
TEST(Mutex, WakesWhoSleeps) {
  const HangGuard guard(30);
  muster::mutex mutex;
  unsigned count = 0;
  run_threads(8, [&](unsigned) {
    for (unsigned turn = 0; turn < 20; ++turn) {
      const std::scoped_lock held(mutex);
      std::this_thread::sleep_for(200us);
      ++count;
    }
  });
  EXPECT_EQ(count, 160U);
}

TEST(Mutex, GivesUpAtADeadline) {
  const HangGuard guard(30);
  muster::mutex mutex;
  mutex.lock();
  std::thread([&] {
    EXPECT_FALSE(mutex.try_lock());
    EXPECT_FALSE(mutex.try_lock_for(0ns));
    EXPECT_FALSE(mutex.try_lock_for(-1s));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(mutex.try_lock_for(20ms));
    EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
    EXPECT_FALSE(mutex.try_lock_until(std::chrono::system_clock::now() + 5ms));
  }).join();
  mutex.unlock();
}

/// Whoever waits so long is asleep when it is given.
template <class Take>
void expect_taken_by_who_waits(Take take) {
  muster::mutex mutex;
  mutex.lock();
  std::thread waiter([&] {
    EXPECT_TRUE(take(mutex));
    mutex.unlock();
  });
  std::this_thread::sleep_for(20ms);
  mutex.unlock();
  waiter.join();
}

/// In nanoseconds some of them are more than 64 bits hold.
TEST(Mutex, AnyDurationIsWaitedFor) {
  using std::chrono::hours;
  using std::chrono::steady_clock;
  const HangGuard guard(30);
  expect_taken_by_who_waits([](muster::mutex& m) { return m.try_lock_for(1h); });
  expect_taken_by_who_waits([](muster::mutex& m) { return m.try_lock_for(hours::max()); });
  expect_taken_by_who_waits(
      [](muster::mutex& m) { return m.try_lock_for(std::chrono::duration<double>(1e300)); });
  expect_taken_by_who_waits(
      [](muster::mutex& m) { return m.try_lock_until(steady_clock::time_point::max()); });
  muster::mutex mutex;
  mutex.lock();
  std::thread([&] {
    EXPECT_FALSE(mutex.try_lock_for(hours::min()));
    EXPECT_FALSE(mutex.try_lock_until(steady_clock::time_point::min()));
  }).join();
  mutex.unlock();
}

TEST(Mutex, ServesAConditionVariable) {
  const HangGuard guard(30);
  muster::mutex mutex;
  std::condition_variable_any changed;
  unsigned turn = 0;
  run_threads(4, [&](unsigned me) {
    for (unsigned round = 0; round < 100; ++round) {
      std::unique_lock held(mutex);
      changed.wait(held, [&] { return turn % 4 == me; });
      ++turn;
      changed.notify_all();
    }
  });
  EXPECT_EQ(turn, 400U);
}

/// Whoever takes it next may free it at once.
TEST(Mutex, MayBeFreedByTheNextHolder) {
  const HangGuard guard(30);
  for (unsigned turn = 0; turn < 300; ++turn) {
    auto* const mutex = new muster::mutex;
    mutex->lock();
    std::thread next([mutex] {
      mutex->lock();
      mutex->unlock();
      delete mutex;
    });
    std::this_thread::yield();
    mutex->unlock();
    next.join();
  }
}

TEST(Mutex, KeepsErrno) {
  const HangGuard guard(30);
  muster::mutex mutex;
  run_threads(4, [&](unsigned) {
    for (unsigned turn = 0; turn < 50; ++turn) {
      errno = 77;
      const std::scoped_lock held(mutex);
      std::this_thread::sleep_for(20us);
      errno = 77;
    }
    EXPECT_EQ(errno, 77);
  });
}

// The first time, too, when it counts the CPUs: in a program of its own.
TEST(MutexDeathTest, KeepsErrnoWhenItIsFirstTaken) {
  if (muster::test::emulated) GTEST_SKIP() << "qemu-user would have to be started again";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        muster::mutex mutex;
        mutex.lock();
        int error = 0;
        std::thread waiting([&] {
          errno = 77;
          const std::scoped_lock held(mutex);
          error = errno;
        });
        std::this_thread::sleep_for(20ms);
        mutex.unlock();
        waiting.join();
        std::exit(error == 77 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

/// The child has the mutex and none of those that stood in line for it.
TEST(Mutex, ServesAForksChildThoughOthersWaited) {
  if (!muster::test::children_make_threads) {
    GTEST_SKIP() << "no threads' child makes threads here";
  }
  const HangGuard guard(30);
  muster::mutex mutex;
  mutex.lock();
  std::vector<std::thread> waiting;
  std::atomic<unsigned> begun{0};
  for (unsigned i = 0; i < 4; ++i) {
    waiting.emplace_back([&] {
      ++begun;
      const std::scoped_lock held(mutex);
    });
  }
  while (begun < 4) std::this_thread::yield();
  std::this_thread::sleep_for(50ms);  // by now they sleep
  const pid_t child = fork();
  if (child == 0) {
    alarm(600);
    mutex.unlock();
    unsigned count = 0;
    run_threads(3, [&](unsigned) {
      for (unsigned turn = 0; turn < 1000; ++turn) {
        const std::scoped_lock held(mutex);
        ++count;
      }
    });
    _exit(count == 3000 ? 0 : 1);
  }
  mutex.unlock();
  for (std::thread& thread : waiting) thread.join();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Mutex, IsAlsoCalledFromElsewhere) {
  muster_mutex mutex = MUSTER_MUTEX_INITIALIZER;
  muster_mutex_lock_slowly(&mutex);
  EXPECT_EQ(muster_mutex_trylock_slowly(&mutex), 0);
  EXPECT_EQ(muster_mutex_timedlock(&mutex, 1000), MUSTER_ETIMEDOUT);
  muster_mutex_unlock_slowly(&mutex);
  EXPECT_NE(muster_mutex_trylock_slowly(&mutex), 0);
  muster_mutex_unlock(&mutex);
}

}  // namespace
