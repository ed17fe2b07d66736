// SPDX-License-Identifier: BSD-3-Clause
// Locks between processes: who may attach, and who is told that a process died.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "fault_rounds.hpp"
#include "harness.hpp"
#include "muster/lock.h"

namespace muster::test {
namespace {

void increment(void* argument) { ++*static_cast<int*>(argument); }

muster_lock_options shared_options(const SharedMemory& memory) {
  muster_lock_options options;
  muster_lock_options_init(&options);
  options.kind = "pthread-mutex";
  options.memory = memory.data();
  return options;
}

TEST(SharedLock, DoesNotShareTime) {
  const SharedMemory memory(muster_lock_memory());
  muster_lock_options options = shared_options(memory);
  options.share_ns = 2'000'000;
  muster_lock* lock = nullptr;
  EXPECT_EQ(MUSTER_ENOTSUP, muster_lock_create(&lock, &options));
}

TEST(SharedLock, AttachesOnlyToASharedLockThatIsThere) {
  const SharedMemory memory(2 * muster_lock_memory());
  muster_lock_options options = shared_options(memory);
  muster_lock* lock = nullptr;
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
  options = shared_options(memory);
  ASSERT_EQ(MUSTER_OK, muster_lock_create(&lock, &options)) << "whatever was there before";
  options.attach = 1;
  muster_lock* other = nullptr;
  ASSERT_EQ(MUSTER_OK, muster_lock_create(&other, &options)) << muster_last_error();
  int count = 0;
  EXPECT_EQ(MUSTER_OK, muster_lock_execute(lock, increment, &count));
  EXPECT_EQ(MUSTER_OK, muster_lock_execute(other, increment, &count));
  EXPECT_EQ(2, count);
  muster_lock_destroy(other);
  muster_lock_destroy(lock);
}

TEST(SharedLock, ProcessesExcludeEachOther) {
  const HangGuard guard(60);
  constexpr int processes = 3;
  constexpr int increments = 20'000;
  const SharedMemory memory(muster_lock_memory() + 4096);
  auto* const count = reinterpret_cast<int*>(memory.data() + muster_lock_memory());
  muster_lock_options options = shared_options(memory);
  muster_lock* lock = nullptr;
  ASSERT_EQ(MUSTER_OK, muster_lock_create(&lock, &options)) << muster_last_error();
  options.attach = 1;
  const auto work = [&] {
    muster_lock* mine = nullptr;
    if (muster_lock_create(&mine, &options) != MUSTER_OK) _exit(1);
    for (int i = 0; i < increments; ++i) {
      if (muster_lock_execute(mine, increment, count) != MUSTER_OK) _exit(2);
    }
    muster_lock_destroy(mine);
    _exit(0);
  };
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < processes; ++i) children.push_back(std::make_unique<Child>(work));
  for (const auto& child : children) EXPECT_EQ("", child->wait());
  EXPECT_EQ(processes * increments, *count);
  muster_lock_destroy(lock);
}

TEST(SharedLock, ASharedLocksConditionIsItsProcesss) {
  const SharedMemory memory(muster_lock_memory());
  const muster_lock_options options = shared_options(memory);
  muster_lock* lock = nullptr;
  ASSERT_EQ(MUSTER_OK, muster_lock_create(&lock, &options)) << muster_last_error();
  muster_cond* cond = nullptr;
  ASSERT_EQ(MUSTER_OK, muster_cond_create(&cond, lock));
  Child child([&] {
    if (muster_cond_signal(cond) != MUSTER_EBUSY) _exit(3);
    const std::string text = muster_last_error();
    _exit(text.find("for the child's threads") != std::string::npos ? 0 : 4);
  });
  EXPECT_EQ("", child.wait());
  muster_cond_destroy(cond);
  muster_lock_destroy(lock);
}

TEST(SharedLock, AKilledHolderIsReported) {
#ifdef MUSTER_TEST_EMULATED
  GTEST_SKIP() << "qemu-user keeps no list of robust mutexes";
#endif
  const HangGuard guard(60);
  for (unsigned round = 0; round < fault_rounds(); ++round) {
    const SharedMemory memory(muster_lock_memory() + 4096);
    auto* const count = reinterpret_cast<int*>(memory.data() + muster_lock_memory());
    muster_lock_options options = shared_options(memory);
    muster_lock* lock = nullptr;
    ASSERT_EQ(MUSTER_OK, muster_lock_create(&lock, &options)) << muster_last_error();
    ASSERT_EQ(MUSTER_OK, muster_lock_execute(lock, increment, count));
    const Shared<std::atomic<bool>> holds;
    Child killed([&] {
      options.attach = 1;
      muster_lock* mine = nullptr;
      muster_lock_create(&mine, &options);
      const auto die = [](void* argument) {
        static_cast<std::atomic<bool>*>(argument)->store(true);
        usleep(2'000);
        kill(getpid(), SIGKILL);
      };
      muster_lock_execute(mine, die, &*holds);
    });
    while (!holds->load()) sched_yield();
    // It dies while another process waits for the lock, and while this one does.
    Child other([&] {
      options.attach = 1;
      muster_lock* mine = nullptr;
      if (muster_lock_create(&mine, &options) != MUSTER_OK) _exit(1);
      if (muster_lock_execute(mine, increment, count) != MUSTER_EPEER) _exit(2);
    });
    EXPECT_EQ(MUSTER_EPEER, muster_lock_execute(lock, increment, count));
    EXPECT_NE("", killed.wait());
    EXPECT_EQ("", other.wait());
    EXPECT_EQ(MUSTER_EPEER, muster_lock_execute(lock, increment, count));
    EXPECT_EQ(1, *count) << "nothing runs on what may be half changed";
    EXPECT_EQ(MUSTER_OK, muster_lock_recover(lock, increment, count));
    EXPECT_EQ(MUSTER_OK, muster_lock_execute(lock, increment, count));
    EXPECT_EQ(3, *count);
    muster_lock_destroy(lock);
  }
}

TEST(SharedLock, WhoWaitsForAConditionIsToldOfAKilledHolder) {
#ifdef MUSTER_TEST_EMULATED
  GTEST_SKIP() << "qemu-user keeps no list of robust mutexes";
#endif
  const HangGuard guard(60);
  const SharedMemory memory(muster_lock_memory() + 4096);
  auto& waits = *new (memory.data() + muster_lock_memory()) std::atomic<int>(0);
  muster_lock_options options = shared_options(memory);
  struct Section {
    muster_lock* lock = nullptr;
    muster_cond* cond = nullptr;
    std::atomic<int>* waits = nullptr;
    int waited = -1;
    int recovered = -1;
    static void nothing(void*) {}
    static void execute(void* argument) {
      auto& self = *static_cast<Section*>(argument);
      *self.waits = 1;
      self.waited = muster_cond_wait(self.cond);
      self.recovered = muster_lock_recover(self.lock, nothing, nullptr);
    }
  } section;
  section.waits = &waits;
  ASSERT_EQ(MUSTER_OK, muster_lock_create(&section.lock, &options)) << muster_last_error();
  ASSERT_EQ(MUSTER_OK, muster_cond_create(&section.cond, section.lock));
  Child killed([&] {
    options.attach = 1;
    muster_lock* mine = nullptr;
    muster_lock_create(&mine, &options);
    while (waits == 0) sched_yield();
    muster_lock_execute(
        mine, [](void*) { kill(getpid(), SIGKILL); }, nullptr);
  });
  std::thread signaller([&] {
    EXPECT_NE("", killed.wait());
    muster_cond_signal(section.cond);
  });
  EXPECT_EQ(MUSTER_OK, muster_lock_execute(section.lock, Section::execute, &section));
  signaller.join();
  EXPECT_EQ(MUSTER_EPEER, section.waited);
  EXPECT_EQ(MUSTER_EINVAL, section.recovered) << "it has the lock";
  EXPECT_EQ(MUSTER_EPEER, muster_lock_execute(section.lock, Section::nothing, nullptr));
  EXPECT_EQ(MUSTER_OK, muster_lock_recover(section.lock, Section::nothing, nullptr));
  EXPECT_EQ(MUSTER_OK, muster_lock_execute(section.lock, Section::nothing, nullptr));
  muster_cond_destroy(section.cond);
  muster_lock_destroy(section.lock);
}

}  // namespace
}  // namespace muster::test
