// SPDX-License-Identifier: BSD-3-Clause
// Locks between processes: who may attach, and who is told that a process died.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "fault_rounds.hpp"
#include "harness.hpp"
#include "muster/lock.h"

namespace muster::test {
namespace {

void nothing(void*) {}
void increment(void* argument) { ++*static_cast<int*>(argument); }

/// Memory for a lock, and for a count behind it.
struct SharedLock : testing::Test {
  SharedLock() {
    muster_lock_options_init(&options);
    options.kind = "pthread-mutex";
    options.memory = memory.data();
  }
  ~SharedLock() override { muster_lock_destroy(lock); }
  void make() {
    options.attach = 0;
    ASSERT_EQ(MUSTER_OK, muster_lock_create(&lock, &options)) << muster_last_error();
  }
  /// In another process.
  muster_lock* attached() {
    options.attach = 1;
    muster_lock* mine = nullptr;
    if (muster_lock_create(&mine, &options) != MUSTER_OK) _exit(1);
    return mine;
  }

  SharedMemory memory{2 * muster_lock_memory() + 4096};
  int* const count = reinterpret_cast<int*>(memory.data() + 2 * muster_lock_memory());
  muster_lock_options options{};
  muster_lock* lock = nullptr;
};

TEST_F(SharedLock, DoesNotShareTime) {
  options.share_ns = 2'000'000;
  EXPECT_EQ(MUSTER_ENOTSUP, muster_lock_create(&lock, &options));
}

TEST_F(SharedLock, AttachesOnlyToASharedLockThatIsThere) {
  const auto expect_refusal = [&](const char* text) {
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_create(&lock, &options));
    EXPECT_NE(std::string::npos, std::string(muster_last_error()).find(text))
        << muster_last_error();
    EXPECT_EQ(nullptr, lock);
  };
  options.attach = 1;
  expect_refusal("let one process make it there");
  std::memset(memory.data(), 0x5a, muster_lock_memory());
  expect_refusal("let one process make it there");
  for (const int attach : {0, 1}) {
    options.attach = attach;
    options.memory = memory.data() + 3;
    expect_refusal("aligned");
  }
  options.memory = memory.data();
  make();  // whatever was there before
  options.attach = 1;
  muster_lock* other = nullptr;
  ASSERT_EQ(MUSTER_OK, muster_lock_create(&other, &options)) << muster_last_error();
  EXPECT_EQ(MUSTER_OK, muster_lock_execute(lock, increment, count));
  EXPECT_EQ(MUSTER_OK, muster_lock_execute(other, increment, count));
  EXPECT_EQ(2, *count);
  muster_lock_destroy(other);
}

TEST_F(SharedLock, ProcessesExcludeEachOther) {
  constexpr int processes = 3;
  constexpr int increments = 20'000;
  make();
  EXPECT_EQ("", run_processes(processes, [&](unsigned) {
              muster_lock* const mine = attached();
              for (int i = 0; i < increments; ++i) {
                if (muster_lock_execute(mine, increment, count) != MUSTER_OK) _exit(2);
              }
              muster_lock_destroy(mine);
            }));
  EXPECT_EQ(processes * increments, *count);
}

TEST_F(SharedLock, ASharedLocksConditionIsItsProcesss) {
  make();
  muster_cond* cond = nullptr;
  ASSERT_EQ(MUSTER_OK, muster_cond_create(&cond, lock));
  Child child([&] {
    if (muster_cond_signal(cond) != MUSTER_EBUSY) _exit(3);
    const std::string text = muster_last_error();
    _exit(text.find("for the child's threads") != std::string::npos ? 0 : 4);
  });
  EXPECT_EQ("", child.wait());
  muster_cond_destroy(cond);
}

TEST_F(SharedLock, AKilledHolderIsReported) {
#ifdef MUSTER_TEST_EMULATED
  GTEST_SKIP() << "qemu-user keeps no list of robust mutexes";
#endif
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    make();
    *count = 0;
    ASSERT_EQ(MUSTER_OK, muster_lock_execute(lock, increment, count));
    const Shared<std::atomic<bool>> holds;
    Child killed([&] {
      const auto die = [](void* argument) {
        static_cast<std::atomic<bool>*>(argument)->store(true);
        usleep(2'000);
        kill(getpid(), SIGKILL);
      };
      muster_lock_execute(attached(), die, &*holds);
    });
    while (!holds->load()) sched_yield();
    // It dies while another process waits for the lock, and while this one does.
    Child other([&] {
      if (muster_lock_execute(attached(), increment, count) != MUSTER_EPEER) _exit(2);
    });
    EXPECT_EQ(MUSTER_EPEER, muster_lock_execute(lock, increment, count));
    EXPECT_NE("", killed.wait());
    EXPECT_EQ("", other.wait());
    EXPECT_EQ(MUSTER_EPEER, muster_lock_execute(lock, increment, count));
    EXPECT_EQ(1, *count) << "nothing runs on what may be half changed";
    EXPECT_EQ(MUSTER_OK, muster_lock_recover(lock, increment, count));
    EXPECT_EQ(MUSTER_OK, muster_lock_execute(lock, increment, count));
    EXPECT_EQ(3, *count);
    muster_lock_destroy(std::exchange(lock, nullptr));
  }
}

TEST_F(SharedLock, WhoWaitsForAConditionIsToldOfAKilledHolder) {
#ifdef MUSTER_TEST_EMULATED
  GTEST_SKIP() << "qemu-user keeps no list of robust mutexes";
#endif
  const Shared<std::atomic<int>> waits;
  make();
  struct Section {
    muster_lock* lock;
    std::atomic<int>* waits;
    muster_cond* cond = nullptr;
    int waited = -1;
    int recovered = -1;
    static void execute(void* argument) {
      auto& self = *static_cast<Section*>(argument);
      *self.waits = 1;
      self.waited = muster_cond_wait(self.cond);
      self.recovered = muster_lock_recover(self.lock, nothing, nullptr);
    }
  } section{lock, &*waits};
  ASSERT_EQ(MUSTER_OK, muster_cond_create(&section.cond, lock));
  Child killed([&] {
    while (*waits == 0) sched_yield();
    muster_lock_execute(
        attached(), [](void*) { kill(getpid(), SIGKILL); }, nullptr);
  });
  std::thread signaller([&] {
    EXPECT_NE("", killed.wait());
    muster_cond_signal(section.cond);
  });
  EXPECT_EQ(MUSTER_OK, muster_lock_execute(lock, Section::execute, &section));
  signaller.join();
  EXPECT_EQ(MUSTER_EPEER, section.waited);
  EXPECT_EQ(MUSTER_EINVAL, section.recovered) << "it has the lock";
  EXPECT_EQ(MUSTER_EPEER, muster_lock_execute(lock, nothing, nullptr));
  EXPECT_EQ(MUSTER_OK, muster_lock_recover(lock, nothing, nullptr));
  EXPECT_EQ(MUSTER_OK, muster_lock_execute(lock, nothing, nullptr));
  muster_cond_destroy(section.cond);
}

}  // namespace
}  // namespace muster::test
