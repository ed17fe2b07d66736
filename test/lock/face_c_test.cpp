// SPDX-License-Identifier: BSD-3-Clause
// What only C programs call by name.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "harness.hpp"
#include "muster/lock.h"
#include "muster/lock.hpp"

namespace muster::test {
namespace {

TEST(LockAbi, PostsAreExecutedInOrderAndBeforeTheNextCall) {
  const HangGuard guard(60);
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    muster_lock_options options;
    muster_lock_options_init(&options);
    options.kind = *kind;
    muster_lock* lock = nullptr;
    ASSERT_EQ(MUSTER_OK, muster_lock_create(&lock, &options)) << *kind << muster_last_error();
    constexpr int posts = 100;
    struct Post {
      std::vector<int>* seen;
      int number;
    };
    std::vector<int> seen;
    std::vector<Post> sent;
    for (int i = 0; i < posts; ++i) sent.push_back({&seen, i});
    for (Post& post : sent) {
      const auto note = [](void* argument) {
        const auto& one = *static_cast<Post*>(argument);
        one.seen->push_back(one.number);
      };
      ASSERT_EQ(MUSTER_OK, muster_post(lock, note, &post)) << *kind;
    }
    EXPECT_EQ(MUSTER_OK, muster_prepare_wait(lock)) << "outside of sections it does nothing";
    std::size_t before = 0;
    const auto count = [&] { before = seen.size(); };
    ASSERT_EQ(MUSTER_OK, muster_execute(
                             lock, [](void* fn) { (*static_cast<decltype(count)*>(fn))(); },
                             const_cast<void*>(static_cast<const void*>(&count))));
    EXPECT_EQ(static_cast<std::size_t>(posts), before) << *kind;
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end())) << *kind;
    muster_lock_destroy(lock);
  }
}

TEST(LockAbi, AForksChildHasAnotherProcessNumber) {
  const muster::lock lock;
  const unsigned number = muster_process_number();
  EXPECT_EQ(number, muster_process_number());
  Child child([&] { _exit(muster_process_number() == number ? 1 : 0); });
  EXPECT_EQ("", child.wait());
  EXPECT_EQ(number, muster_process_number());
}

/// A thread whose section is cancelled, or one that it executes for another client.
struct Victim {
  muster_lock* lock;
  bool in_own;  ///< its own section has the cancellation point; else the other's has
  int known;    ///< sections of this lock that it has executed before
  std::atomic<bool> inside{false};
  std::atomic<bool> may_go{false};
  std::atomic<bool> asks{false};
  int begun = 0;  ///< sections of the other client
  int ended = 0;
  bool was_cancelled = false;
};

extern "C" void section_of_victim(void* argument) {
  auto& v = *static_cast<Victim*>(argument);
  v.inside = true;
  while (!v.may_go) sched_yield();
  if (v.in_own) pthread_testcancel();
}

extern "C" void section_of_other(void* argument) {
  auto& v = *static_cast<Victim*>(argument);
  ++v.begun;
  if (!v.in_own) pthread_testcancel();
  ++v.ended;
}

extern "C" void* be_victim(void* argument) {
  auto& v = *static_cast<Victim*>(argument);
  for (int i = 0; i < v.known; ++i) {
    muster_execute(
        v.lock, [](void*) {}, nullptr);
  }
  muster_execute(v.lock, section_of_victim, argument);
  pthread_testcancel();
  return nullptr;
}

extern "C" void* be_other(void* argument) {
  auto& v = *static_cast<Victim*>(argument);
  v.asks = true;
  muster_execute(v.lock, section_of_other, argument);
  return nullptr;
}

TEST(LockAbi, ACancelledThreadGivesTheLockBackAndFinishesWhatIsOthers) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer does not follow the unwinding of a cancelled thread";
#endif
  const HangGuard guard(60);
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    for (const bool in_own : {true, false}) {
      for (const int known : {0, 1, 3}) {  // the first ones go other ways
        SCOPED_TRACE(*kind + std::to_string(known) + (in_own ? " in its own" : " in another's"));
        muster::lock lock(*kind);
        Victim v{.lock = lock.native_handle(), .in_own = in_own, .known = known};
        pthread_t victim{};
        pthread_t other{};
        ASSERT_EQ(0, pthread_create(&victim, nullptr, be_victim, &v));
        while (!v.inside) sched_yield();
        ASSERT_EQ(0, pthread_create(&other, nullptr, be_other, &v));
        while (!v.asks) sched_yield();
        usleep(500);  // most often it waits by then
        EXPECT_EQ(0, pthread_cancel(victim));
        v.may_go = true;
        void* result = nullptr;
        EXPECT_EQ(0, pthread_join(victim, &result));
        EXPECT_EQ(PTHREAD_CANCELED, result);
        EXPECT_EQ(0, pthread_join(other, nullptr));
        EXPECT_EQ(1, v.begun);
        EXPECT_EQ(1, v.ended);
        EXPECT_EQ(2, lock.execute([] { return 2; }));
      }
    }
  }
}

// Through what carries exceptions to the caller, and in a section around it.
TEST(LockFace, ACancelledThreadGivesItsLocksBack) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer does not follow the unwinding of a cancelled thread";
#endif
  const HangGuard guard(60);
  for (const char* const kind : {"auto", "mcs", "cc-synch", "pthread-mutex", "rcl"}) {
    SCOPED_TRACE(kind);
    struct {
      muster::lock outer;
      muster::lock inner;
      int executed = 0;
      std::atomic<bool> inside{false};
      std::atomic<bool> may_go{false};
    } all{muster::lock(kind), muster::lock(kind)};
    const auto run = [](void* argument) -> void* {
      auto& a = *static_cast<decltype(&all)>(argument);
      a.outer.execute([&] { return ++a.executed; });
      a.outer.execute([&] {
        a.outer.post([&] { ++a.executed; });
        a.inside = true;
        while (!a.may_go) sched_yield();
        a.inner.execute([&] { pthread_testcancel(); });
        pthread_testcancel();
      });
      pthread_testcancel();
      return nullptr;
    };
    pthread_t victim{};
    ASSERT_EQ(0, pthread_create(&victim, nullptr, run, &all));
    while (!all.inside) sched_yield();
    EXPECT_EQ(0, pthread_cancel(victim));
    all.may_go = true;
    void* result = nullptr;
    EXPECT_EQ(0, pthread_join(victim, &result));
    EXPECT_EQ(PTHREAD_CANCELED, result);
    EXPECT_EQ(2, all.inner.execute([] { return 2; }));
    EXPECT_EQ(2, all.outer.execute([&] { return all.executed; })) << "what was posted";
  }
}

}  // namespace
}  // namespace muster::test
