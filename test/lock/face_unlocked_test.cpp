// SPDX-License-Identifier: BSD-3-Clause
// Parts of sections without their lock.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "harness.hpp"
#include "muster/lock.hpp"

namespace muster::test {
namespace {

void nothing(void*) {}

/// Calls test(lock, its name) with a new lock of each kind whose sections may give it up.
template <class Test>
void with_each_kind(Test&& test) {
  unsigned kinds = 0;
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    muster_lock_options options;
    muster_lock_options_init(&options);
    options.kind = *kind;
    options.unlocks = 1;
    muster_lock* made = nullptr;
    const int status = muster_lock_create(&made, &options);
    if (status == MUSTER_ENOTSUP) continue;
    ASSERT_EQ(MUSTER_OK, status) << *kind;
    muster_lock_destroy(made);
    ++kinds;
    muster::lock lock(muster::lock_options{.kind = *kind, .unlocks = true});
    test(lock, *kind);
  }
  EXPECT_GE(kinds, 5U);
}

// The other thread would be waited for without end if the lock were taken.
TEST(Unlocked, LetsOthersIn) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    for (int turn = 0; turn < 20; ++turn) {  // the short way, too
      int word = 0;
      const int seen = lock.execute([&] {
        const int answer = lock.unlocked([&] {
          std::thread([&] { lock.execute([&] { word = 1; }); }).join();
          return 7;
        });
        return word * answer;
      });
      EXPECT_EQ(7, seen) << kind;
    }
  });
}

TEST(Unlocked, WhatWasPostedToTheLockIsExecutedBefore) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    const HangGuard guard(60, kind);
    int n = 0;
    lock.execute([&] {
      auto result = lock.async([&] { return ++n; });
      lock.unlocked([&] { EXPECT_EQ(1, result.get()) << kind; });
    });
    muster::condition full(lock);
    lock.execute([&] {
      lock.post([&] {
        ++n;
        full.notify_one();
      });
      full.wait([&] { return n == 2; });
    });
  });
  for (const char* kind : {"auto", "rcl", "mcs", "pthread-mutex", "robust"}) {
    const HangGuard guard(60, kind);
    muster::lock lock(muster::lock_options{.kind = kind, .unlocks = true});
    const std::lock_guard acquired(lock);
    auto result = lock.async([] { return 1; });
    lock.unlocked([&] { EXPECT_EQ(1, result.get()) << kind; });
  }
}

TEST(Unlocked, OneIsInsideAtATime) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    constexpr int turns = 300;
    bool taken = false;
    bool met = false;
    int count = 0;
    const auto enter = [&] { met = met || std::exchange(taken, true); };
    run_threads(4, [&](unsigned) {
      for (int turn = 0; turn < turns; ++turn) {
        lock.execute([&] {
          enter();
          ++count;
          taken = false;
          if (turn % 3 == 0) lock.unlocked([] { std::this_thread::yield(); });
          enter();
          taken = false;
        });
      }
    });
    EXPECT_FALSE(met) << kind;
    EXPECT_EQ(4 * turns, count) << kind;
  });
}

TEST(Unlocked, IsAsOutsideOfTheSection) {
  with_each_kind([](muster::lock& outer, const char* kind) {
    muster::lock lock(muster::lock_options{.kind = kind, .unlocks = true});
    muster::lock other("rcl");
    int count = 0;
    std::atomic<bool> posted{false};
    int around = MUSTER_OK;
    for (int turn = 1; turn <= 20; ++turn) {
      posted = false;
      outer.execute([&] {
        lock.execute([&] {
          other.post([&] { posted = true; });  // sent when the thread is outside, and no other way
          lock.unlocked([&] { lock.execute([&] { ++count; }); });
          around = muster_lock_execute(outer.native_handle(), nothing, nullptr);
        });
      });
      EXPECT_EQ(MUSTER_EINVAL, around) << kind;  // it stays taken
      lock.execute([&] {
        lock.unlocked(
            [&] { lock.execute([&] { lock.unlocked([&] { lock.execute([&] { ++count; }); }); }); });
        ++count;
      });
      EXPECT_EQ(3 * turn, count) << kind;
      while (!posted) std::this_thread::yield();
    }
  });
}

TEST(Unlocked, SendsWhatTheSectionHasPosted) {
  with_each_kind([](muster::lock& lock, const char*) {
    muster::lock other("rcl");
    std::atomic<bool> posted{false};
    lock.execute([&] {
      other.post([&] { posted = true; });
      lock.unlocked([&] {
        while (!posted) std::this_thread::yield();
      });
    });
  });
}

TEST(Unlocked, WhatItThrowsComesOutWithTheLockTaken) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    int again = MUSTER_OK;
    EXPECT_THROW(lock.execute([&] {
      try {
        lock.unlocked([] { throw std::runtime_error("outside"); });
      } catch (const std::runtime_error&) {
        again = muster_lock_execute(lock.native_handle(), nothing, nullptr);
        throw;
      }
    }),
                 std::runtime_error)
        << kind;
    EXPECT_EQ(MUSTER_EINVAL, again) << kind;
    EXPECT_EQ(3, lock.execute([] { return 3; })) << kind;
  });
}

TEST(Unlocked, ErrnoGoesInAndComesOut) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    int before = 0;
    int after = 0;
    lock.execute([&] {
      errno = 11;
      lock.unlocked([&] {
        before = errno;
        errno = 12;
      });
      after = errno;
    });
    EXPECT_EQ(11, before) << kind;
    EXPECT_EQ(12, after) << kind;
  });
}

TEST(Unlocked, IsRefusedElsewhere) {
  with_each_kind([](muster::lock& lock, const char* kind) {
    muster::lock inner("mcs");
    bool called = false;
    const auto unlocked = [&](muster_lock* of) {
      return muster_lock_unlocked(
          of, [](void* flag) { *static_cast<bool*>(flag) = true; }, &called);
    };
    EXPECT_EQ(MUSTER_EINVAL, unlocked(lock.native_handle())) << kind;
    EXPECT_EQ(MUSTER_EINVAL, unlocked(nullptr));
    int of_one_around = MUSTER_OK;
    lock.execute([&] { inner.execute([&] { of_one_around = unlocked(lock.native_handle()); }); });
    EXPECT_EQ(MUSTER_EINVAL, of_one_around) << kind;
    EXPECT_FALSE(called) << kind;
  });
}

// By its own server, which another thread then ends.
TEST(LockFace, ALockMayEndInWhatItsOwnSectionHasPosted) {
  auto* const lock = new muster::lock(muster::lock_options{.kind = "rcl", .own_server = "pack"});
  muster::lock other("auto");
  std::atomic<bool> is_gone{false};
  std::atomic<bool> is_posted{false};
  lock->post([&] {
    while (!is_posted) std::this_thread::yield();  // nobody else uses the lock any more
    other.post([&] {
      delete lock;
      is_gone = true;
    });
  });
  is_posted = true;
  while (!is_gone) std::this_thread::yield();
}

TEST(Unlocked, WhoseSectionsOthersExecuteSaysSoBefore) {
  for (const char* const kind : {"auto", "rcl"}) {
    muster::lock lock(kind);
    EXPECT_THROW(lock.execute([&] { lock.unlocked([] { FAIL() << "called"; }); }), muster::error)
        << kind;
    EXPECT_EQ(3, lock.execute([] { return 3; })) << kind;
  }
  EXPECT_THROW(muster::lock(muster::lock_options{.kind = "cc-synch", .unlocks = true}),
               muster::error);
}

}  // namespace
}  // namespace muster::test
