// SPDX-License-Identifier: BSD-3-Clause
// What only C programs call by name.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "harness.hpp"
#include "muster/lock.hpp"

namespace muster::test {
namespace {

TEST(LockAbi, PostsAreExecutedInOrderAndBeforeTheNextCall) {
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    muster::lock lock(*kind);
    std::vector<int> seen;
    for (int i = 0; i < 100; ++i) lock.post([&seen, i] { seen.push_back(i); });
    EXPECT_EQ(MUSTER_OK, muster_lock_prepare_wait(lock.native_handle())) << "outside of sections";
    EXPECT_EQ(100U, lock.execute([&] { return seen.size(); })) << *kind;
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end())) << *kind;
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

/// Calls in a handler of a handler. Each says what it handled when it ends.
template <class F>
void in_two_handlers(const F& call, std::string& seen) {
  struct Tell {
    const std::string& handled;
    std::string& to;
    ~Tell() { to += handled; }
  };
  try {
    throw std::string("outer");
  } catch (const std::string& outer) {
    const Tell tell_outer{outer, seen};
    try {
      throw std::string("inner ");
    } catch (const std::string& inner) {
      const Tell tell_inner{inner, seen};
      call();
    }
  }
}

/// A thread whose section is cancelled, or one that it executes for another client.
struct Victim {
  muster_lock* lock;
  bool in_own;  ///< its own section has the cancellation point; else the other's has
  int known;    ///< sections of this lock that it has executed before
  bool in_handler = false;
  std::atomic<bool> inside{false};
  std::atomic<bool> may_go{false};
  std::atomic<bool> asks{false};
  int begun = 0;  ///< sections of the other client
  int ended = 0;
  std::string seen{};
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
    muster_lock_execute(
        v.lock, [](void*) {}, nullptr);
  }
  const auto call = [&] {
    muster_lock_execute(v.lock, section_of_victim, argument);
    pthread_testcancel();
  };
  if (!v.in_handler) call();
  in_two_handlers(call, v.seen);
  return nullptr;
}

extern "C" void* be_other(void* argument) {
  auto& v = *static_cast<Victim*>(argument);
  v.asks = true;
  muster_lock_execute(v.lock, section_of_other, argument);
  return nullptr;
}

TEST(LockAbi, ACancelledThreadGivesTheLockBackAndFinishesWhatIsOthers) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer does not follow the unwinding of a cancelled thread";
#endif
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    for (const bool in_own : {true, false}) {
      for (const int known : {0, 1, 3, -1}) {  // the first ones go other ways
        SCOPED_TRACE(*kind + std::to_string(known) + (in_own ? " in its own" : " in another's"));
        muster::lock lock(*kind);
        const bool in_handler = known == -1;
        Victim v{.lock = lock.native_handle(),
                 .in_own = in_own,
                 .known = in_handler ? 1 : known,
                 .in_handler = in_handler};
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
        EXPECT_EQ(in_handler ? "inner outer" : "", v.seen);
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
  for (const std::string what :
       {"auto", "mcs", "cc-synch", "pthread-mutex", "rcl", "auto handling", "mcs handling",
        "cc-synch handling", "pthread-mutex handling", "rcl handling"}) {
    SCOPED_TRACE(what);
    const std::string kind = what.substr(0, what.find(' '));
    struct {
      muster::lock outer;
      muster::lock inner;
      bool in_handler;
      std::string seen{};
      int executed = 0;
      std::atomic<bool> inside{false};
      std::atomic<bool> may_go{false};
    } all{muster::lock(kind.c_str()), muster::lock(kind.c_str()), kind != what};
    const auto run = [](void* argument) -> void* {
      auto& a = *static_cast<decltype(&all)>(argument);
      a.outer.execute([&] { return ++a.executed; });
      const auto call = [&] {
        a.outer.execute([&] {
          a.outer.post([&] { ++a.executed; });
          a.inside = true;
          while (!a.may_go) sched_yield();
          a.inner.execute([&] { pthread_testcancel(); });
          pthread_testcancel();
        });
        pthread_testcancel();
      };
      if (!a.in_handler) call();
      in_two_handlers(call, a.seen);
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
    EXPECT_EQ(all.in_handler ? "inner outer" : "", all.seen);
    EXPECT_EQ(2, all.inner.execute([] { return 2; }));
    EXPECT_EQ(2, all.outer.execute([&] { return all.executed; })) << "what was posted";
  }
}

}  // namespace
}  // namespace muster::test
