// SPDX-License-Identifier: BSD-3-Clause
// Locks that threads take for themselves, beside sections that are calls.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "harness.hpp"
#include "muster/lock.hpp"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

void nothing(void*) {}

bool can_be_taken(const char* kind) {
  muster::lock lock(kind);
  const int status = muster_lock_acquire(lock.native_handle());
  if (status == MUSTER_OK) return muster_lock_release(lock.native_handle()) == MUSTER_OK;
  EXPECT_EQ(MUSTER_ENOTSUP, status) << kind;
  return false;
}

/// Calls test(lock, its name) with a new lock of each kind that threads can take for themselves.
template <class Test>
void with_each_kind(Test&& test) {
  unsigned kinds = 0;
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    if (!can_be_taken(*kind)) continue;
    ++kinds;
    muster::lock lock(*kind);
    test(lock, *kind);
  }
  EXPECT_LE(7U, kinds);
}

int in_other_thread(muster::lock& lock, int (*what)(muster_lock*)) {
  int status = MUSTER_OK;
  std::thread([&] {
    status = what(lock.native_handle());
    if (status == MUSTER_OK && what != muster_lock_release) {
      EXPECT_EQ(MUSTER_OK, muster_lock_release(lock.native_handle()));
    }
  }).join();
  return status;
}

TEST(Lockable, KindsThatCannotSayAtOnce) {
  for (const char* kind : {"oyama", "flat-combining", "cc-synch", "dsm-synch", "h-synch", "clh"}) {
    muster::lock lock(kind);
    EXPECT_EQ(MUSTER_ENOTSUP, muster_lock_acquire(lock.native_handle())) << kind;
    EXPECT_NE(std::string::npos, std::string(muster_last_error()).find(kind));
    EXPECT_EQ(MUSTER_ENOTSUP, muster_lock_try_acquire(lock.native_handle())) << kind;
    EXPECT_EQ(MUSTER_ENOTSUP, muster_lock_timed_acquire(lock.native_handle(), 1)) << kind;
    EXPECT_EQ(MUSTER_ENOTSUP, muster_lock_try_execute(lock.native_handle(), nothing, nullptr));
    EXPECT_EQ(1, lock.execute([] { return 1; })) << kind;  // as it was
  }
}

// The word is plain: ThreadSanitizer sees what is not ordered.
TEST(Lockable, ExcludesSectionsAndHolders) {
  const HangGuard guard(120);
  with_each_kind([](muster::lock& lock, const char* kind) {
    constexpr int turns = 400;
    bool taken = false;
    bool met = false;
    int count = 0;
    const auto section = [&] {
      met = met || std::exchange(taken, true);
      ++count;
      taken = false;
    };
    run_threads(4, [&](unsigned thread) {
      for (int turn = 0; turn < turns; ++turn) {
        switch ((static_cast<int>(thread) + turn) % 4) {
          case 0: {
            const std::lock_guard held(lock);
            section();
            break;
          }
          case 1:
            lock.post(section);
            break;
          case 2: {
            std::unique_lock held(lock, 10s);
            ASSERT_TRUE(held);
            section();
            held.unlock();
            held.lock();
            break;
          }
          default:
            lock.execute(section);
        }
      }
      lock.execute([] {});  // after what it has posted
    });
    lock.lock();
    EXPECT_EQ(4 * turns, count) << kind;
    lock.unlock();
    EXPECT_FALSE(met) << kind;
  });
}

TEST(Lockable, OthersDoNotGetItMeanwhile) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    for (int turn = 0; turn < 3; ++turn) {
      lock.lock();
      EXPECT_EQ(MUSTER_ETIMEDOUT, in_other_thread(lock, muster_lock_try_acquire)) << kind;
      EXPECT_EQ(MUSTER_ETIMEDOUT, in_other_thread(lock, [](muster_lock* of) {
                  errno = 7;
                  const int status = muster_lock_timed_acquire(of, 3'000'000);
                  EXPECT_EQ(7, errno);
                  return status;
                }));
      std::thread([&] {
        EXPECT_FALSE(lock.try_execute([] {}));
        EXPECT_FALSE(lock.try_lock_for(-1s));
        EXPECT_FALSE(lock.try_lock_until(std::chrono::system_clock::now() + 1ms));
      }).join();
      lock.unlock();
      EXPECT_EQ(MUSTER_OK, in_other_thread(lock, muster_lock_try_acquire)) << kind;
      lock.execute([] {});  // the short way
    }
  });
}

TEST(Lockable, WaitsForItsTurn) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    std::atomic<bool> held{false};
    int word = 0;
    std::thread holder([&] {
      const std::lock_guard mine(lock);
      held = true;
      std::this_thread::sleep_for(5ms);
      word = 1;
    });
    while (!held) std::this_thread::yield();
    std::thread timed([&] {
      ASSERT_TRUE(lock.try_lock_for(std::chrono::hours::max())) << kind;
      EXPECT_EQ(1, word);
      lock.unlock();
    });
    EXPECT_EQ(1, lock.execute([&] { return word; })) << kind;
    const std::lock_guard mine(lock);
    holder.join();
    lock.unlock();
    timed.join();
    lock.lock();
  });
}

TEST(Lockable, IsASectionMeanwhile) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    muster_lock* const handle = lock.native_handle();
    for (int turn = 0; turn < 3; ++turn) {
      lock.lock();
      EXPECT_EQ(MUSTER_EINVAL, muster_lock_execute(handle, nothing, nullptr)) << kind;
      EXPECT_EQ(MUSTER_EINVAL, muster_lock_acquire(handle)) << kind;
      EXPECT_EQ(MUSTER_EINVAL, muster_lock_try_acquire(handle)) << kind;
      EXPECT_EQ(MUSTER_EINVAL, muster_lock_try_execute(handle, nothing, nullptr)) << kind;
      muster_lock_destroy(handle);  // nothing happens
      lock.unlock();
      EXPECT_EQ(1, lock.execute([] { return 1; })) << kind;
      lock.execute([&] {
        EXPECT_EQ(MUSTER_EINVAL, muster_lock_acquire(handle)) << kind;
        EXPECT_EQ(MUSTER_EINVAL, muster_lock_release(handle)) << kind;
      });
    }
  });
}

TEST(Lockable, OnlyWhoHasAcquiredItReleasesIt) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    muster::lock other("mcs");
    muster_lock* const handle = lock.native_handle();
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_release(handle)) << kind;
    EXPECT_THROW(lock.unlock(), muster::error) << kind;
    lock.lock();
    EXPECT_EQ(MUSTER_EINVAL, in_other_thread(lock, muster_lock_release)) << kind;
    other.execute([&] { EXPECT_EQ(MUSTER_EINVAL, muster_lock_release(handle)) << kind; });
    EXPECT_EQ(MUSTER_ETIMEDOUT, in_other_thread(lock, muster_lock_try_acquire)) << kind;
    lock.unlock();
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_release(handle)) << kind;
    // A section that is tried has acquired it.
    const auto releases = [](void* of) {
      EXPECT_EQ(MUSTER_OK, muster_lock_release(static_cast<muster_lock*>(of)));
    };
    EXPECT_EQ(MUSTER_OK, muster_lock_try_execute(handle, releases, handle)) << kind;
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_release(handle)) << kind;
    EXPECT_EQ(MUSTER_OK, in_other_thread(lock, muster_lock_try_acquire)) << kind;
  });
}

TEST(LockableDeathTest, SectionsReleaseWhatTheyAcquire) {
  if (emulated) GTEST_SKIP() << "qemu-user would have to be started again";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const char* kind : {"auto", "rcl", "pthread-mutex", "mcs", "flat-combining", "cc-synch"}) {
    const auto leaves = [kind](bool nested) {
      const HangGuard guard(60);  // a death test's process has no listeners
      muster::lock lock(kind);
      muster::lock acquired("mcs");
      muster::lock around("ticket");
      for (int turn = 0; turn < 3; ++turn) lock.execute([] {});  // the short way, if there is one
      if (nested) around.lock();
      lock.execute([&] { acquired.lock(); });
      for (;;) pause();  // a server ends it a little later
    };
    EXPECT_DEATH(leaves(false), "has acquired") << kind;
    EXPECT_DEATH(leaves(true), "has acquired") << kind;
  }
  EXPECT_DEATH(
      {
        muster::lock lock(muster::lock_options{.kind = "auto", .unlocks = true});
        muster::lock acquired("mcs");
        lock.execute([&] { lock.unlocked([&] { acquired.lock(); }); });
      },
      "has acquired");
}

// Posts find the section around all, which is not the lock that was acquired last.
TEST(Lockable, PostsOfSectionsThatAcquire) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    for (const char* other_kind : {"auto", "rcl", "mcs", "flat-combining"}) {
      muster::lock other(other_kind);
      muster::lock posted("auto");
      for (int turn = 1; turn <= 5; ++turn) {
        std::atomic<int> done{0};
        other.execute([&] {
          const std::lock_guard held(lock);
          posted.post([&] { ++done; });
          EXPECT_EQ(0, done) << kind << " in " << other_kind;
        });
        while (done != 1) std::this_thread::yield();
      }
    }
  });
}

// Its thread has something to see to at the section's end, though it has posted nothing yet.
TEST(Lockable, ASectionThatHasAcquiredAnotherMayWait) {
  std::thread([] {
    muster::lock around;
    muster::lock acquired;
    muster::lock awaited;
    around.execute([&] {
      const std::lock_guard guard(acquired);
      EXPECT_EQ(MUSTER_OK, muster_lock_prepare_wait(awaited.native_handle()));
    });
  }).join();
}

TEST(Lockable, SeveralInAnyOrder) {
  with_each_kind([](muster::lock& first, const char* kind) {
    muster::lock second(kind);
    muster::lock third("auto");
    const auto free = [](muster::lock& lock) {
      return in_other_thread(lock, muster_lock_try_acquire) == MUSTER_OK;
    };
    for (int turn = 0; turn < 20; ++turn) {
      first.lock();
      second.lock();
      third.lock();
      first.unlock();
      EXPECT_TRUE(free(first)) << kind;
      EXPECT_FALSE(free(second)) << kind;
      EXPECT_EQ(2, first.execute([] { return 2; }));
      first.lock();
      third.unlock();
      EXPECT_FALSE(free(first)) << kind;
      EXPECT_TRUE(free(third)) << kind;
      second.unlock();
      first.unlock();
      EXPECT_TRUE(free(first) && free(second)) << kind;
      const std::scoped_lock all(first, second, third);
    }
    // Hand over hand, where each thread has one while it waits for the next one.
    int words[3] = {};
    run_threads(4, [&](unsigned) {
      for (int turn = 0; turn < 200; ++turn) {
        first.lock();
        ++words[0];
        second.lock();
        first.unlock();
        third.execute([&] { ++words[1]; });
        ++words[2];
        second.unlock();
      }
    });
    EXPECT_EQ(800, words[0]) << kind;
    EXPECT_EQ(800, words[1]) << kind;
    EXPECT_EQ(800, words[2]) << kind;
  });
}

TEST(Lockable, InSectionsAndAroundThem) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    for (const char* other_kind : {"auto", "rcl", "mcs", "flat-combining", "pthread-mutex"}) {
      muster::lock other(other_kind);
      int count = 0;
      run_threads(2, [&](unsigned) {
        for (int turn = 0; turn < 50; ++turn) {
          other.execute([&] {  // by whomever
            const std::lock_guard held(lock);
            ++count;
          });
        }
      });
      EXPECT_EQ(100, count) << kind << " in " << other_kind;
      for (int turn = 0; turn < 3; ++turn) {
        const std::lock_guard held(lock);
        other.execute([&] { ++count; });
        EXPECT_TRUE(muster_lock_execute(lock.native_handle(), nothing, nullptr) == MUSTER_EINVAL);
      }
      EXPECT_EQ(103, count) << kind << " around " << other_kind;
    }
  });
}

TEST(Lockable, WhatIsPostedMeanwhileComesAfter) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    muster::lock other("rcl");
    for (int turn = 0; turn < 5; ++turn) {
      int order = 0;
      int mine = 0;
      std::atomic<bool> others{false};
      lock.lock();
      lock.post([&] { mine = ++order; });
      other.post([&] { others = true; });
      EXPECT_EQ(0, mine) << kind;
      ++order;
      EXPECT_FALSE(others) << kind;
      lock.unlock();
      EXPECT_EQ(2, mine) << kind;
      while (!others) std::this_thread::yield();
    }
  });
}

TEST(Lockable, WhatWasPostedBeforeComesBefore) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    int count = 0;
    for (int turn = 1; turn <= 200; ++turn) {
      lock.post([&] { ++count; });
      if (turn % 2 == 0) {
        while (!lock.try_lock()) std::this_thread::yield();
      } else {
        lock.lock();
      }
      EXPECT_EQ(turn, count) << kind;
      lock.unlock();
    }
  });
}

// Ours, too, and what is done without the lock: others acquire it meanwhile.
TEST(Lockable, GivesItUpInBetween) {
  for (const char* kind : {"auto", "rcl", "mcs", "pthread-mutex"}) {
    muster::lock lock(muster::lock_options{.kind = kind, .unlocks = true});
    muster::condition changed(lock);
    muster::lock around("mcs");
    muster::lock beside("ticket");
    bool ready = false;
    for (int turn = 0; turn < 3; ++turn) {
      const std::lock_guard outer(around);
      lock.lock();
      EXPECT_EQ(3, lock.unlocked([&] {
        const std::lock_guard held(lock);
        EXPECT_EQ(MUSTER_EINVAL, muster_lock_release(around.native_handle())) << kind;
        EXPECT_EQ(MUSTER_ETIMEDOUT, in_other_thread(lock, muster_lock_try_acquire)) << kind;
        return 3;
      }));
      std::thread other([&] {
        const std::lock_guard held(lock);
        ready = true;
        changed.notify_one();
      });
      changed.wait([&] { return ready; });
      ready = false;
      EXPECT_EQ(MUSTER_ETIMEDOUT, in_other_thread(lock, muster_lock_try_acquire)) << kind;
      lock.unlock();
      other.join();
      EXPECT_EQ(MUSTER_OK, in_other_thread(lock, muster_lock_try_acquire)) << kind;
      beside.execute([&] {
        const std::lock_guard held(lock);
        lock.unlocked([&] {
          EXPECT_EQ(MUSTER_OK, in_other_thread(lock, muster_lock_try_acquire)) << kind;
          EXPECT_EQ(4, lock.execute([] { return 4; })) << kind;
          EXPECT_EQ(MUSTER_EINVAL, muster_lock_execute(beside.native_handle(), nothing, nullptr));
        });
        EXPECT_EQ(MUSTER_ETIMEDOUT, in_other_thread(lock, muster_lock_try_acquire)) << kind;
      });
    }
  }
}

TEST(Lockable, TriesSections) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    EXPECT_EQ(5, lock.try_execute([] { return 5; }).value_or(0)) << kind;
    EXPECT_TRUE(lock.try_execute([] {})) << kind;
    EXPECT_THROW(lock.try_execute([] { throw std::runtime_error("it"); }), std::runtime_error);
    EXPECT_EQ(MUSTER_OK, in_other_thread(lock, muster_lock_try_acquire)) << kind;
  });
}

// What a cancelled thread has locked its guard unlocks.
TEST(Lockable, CancelledThreadsGiveItBack) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    std::atomic<bool> held{false};
    std::thread cancelled([&] {
      const std::lock_guard mine(lock);
      held = true;
      for (;;) {  // not pause(): ThreadSanitizer sees nothing of who was cancelled in it
        pthread_testcancel();
        std::this_thread::yield();
      }
    });
    while (!held) std::this_thread::yield();
    pthread_cancel(cancelled.native_handle());
    const std::lock_guard mine(lock);
    cancelled.join();
    SUCCEED() << kind;
  });
}

TEST(Lockable, ForksChildHasNothingToGive) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    for (int turn = 0; turn < 2; ++turn) {  // the second one by the short way
      lock.lock();
      Child child([&] {
        muster_lock* const handle = lock.native_handle();
        if (muster_lock_release(handle) != MUSTER_OK) _exit(1);
        if (muster_lock_release(handle) != MUSTER_EINVAL) _exit(2);
        if (muster_lock_acquire(handle) != MUSTER_EBUSY) _exit(3);
        if (muster_lock_try_acquire(handle) != MUSTER_EBUSY) _exit(4);
        muster::lock own;
        const std::lock_guard held(own);
        _exit(0);
      });
      EXPECT_EQ(MUSTER_ETIMEDOUT, in_other_thread(lock, muster_lock_try_acquire)) << kind;
      lock.unlock();
      EXPECT_EQ("", child.wait()) << kind;
    }
  });
}

TEST(Lockable, SharedOneTellsOfDeath) {
  alignas(128) static char memory[1024];
  ASSERT_LE(muster_lock_memory(), sizeof memory);
  muster_lock_options options;
  muster_lock_options_init(&options);
  options.memory = memory;
  muster_lock* lock = nullptr;
  ASSERT_EQ(MUSTER_OK, muster_lock_create(&lock, &options));
  // A thread that ends with it is as a process that dies.
  std::thread([&] { EXPECT_EQ(MUSTER_OK, muster_lock_acquire(lock)); }).join();
  // Under an emulator it may be seen for a moment after it was joined: this one waits.
  EXPECT_EQ(MUSTER_EPEER, muster_lock_acquire(lock));
  EXPECT_EQ(MUSTER_EPEER, muster_lock_try_acquire(lock));
  EXPECT_EQ(MUSTER_EPEER, muster_lock_timed_acquire(lock, 1'000'000));
  EXPECT_EQ(MUSTER_OK, muster_lock_recover(lock, nothing, nullptr));
  EXPECT_EQ(MUSTER_OK, muster_lock_acquire(lock));
  EXPECT_EQ(MUSTER_OK, muster_lock_release(lock));
  muster_lock_destroy(lock);
}

}  // namespace
}  // namespace muster::test
