// SPDX-License-Identifier: BSD-3-Clause
// Locks between processes: who may attach, and who is told that a process died.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
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

TEST_F(SharedLock, IsRobustAndNoOtherKind) {
  options.kind = "robust";
  make();
  options.attach = 1;
  for (const char* const kind : {"auto", "mcs", "pthread-mutex"}) {
    options.kind = kind;
    muster_lock* other = nullptr;
    EXPECT_EQ(MUSTER_ENOTSUP, muster_lock_create(&other, &options)) << kind;
  }
}

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
    if (round % 3 == 2) {  // a zombie in the other rounds
      EXPECT_NE("", killed.wait());
    }
    // It dies while another process waits for the lock, and while this one does.
    Child other([&] {
      if (muster_lock_execute(attached(), increment, count) != MUSTER_EPEER) _exit(2);
    });
    EXPECT_EQ(MUSTER_EPEER, muster_lock_execute(lock, increment, count));
    if (round % 3 != 2) {
      EXPECT_NE("", killed.wait());
    }
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

/// Where the lock names the calling thread, which has it: its number is in the lower 22 bits.
std::atomic<std::uint32_t>* holder_of(const SharedMemory& memory) {
  for (std::size_t at = 0; at < muster_lock_memory(); at += sizeof(std::uint32_t)) {
    auto* const word = reinterpret_cast<std::atomic<std::uint32_t>*>(memory.data() + at);
    if ((*word & 0x3fffff) == static_cast<std::uint32_t>(gettid())) return word;
  }
  return nullptr;
}

// Shared ones, too: face_lockable_test.cpp.
TEST_F(SharedLock, AThreadThatEndsWithOneThatIsNotSharedIsReported) {
  const HangGuard guard(10);
  options.memory = nullptr;
  options.kind = "robust";
  ASSERT_EQ(MUSTER_OK, muster_lock_create(&lock, &options));
  std::thread([&] { EXPECT_EQ(MUSTER_OK, muster_lock_acquire(lock)); }).join();
  EXPECT_EQ(MUSTER_EPEER, muster_lock_execute(lock, nothing, nullptr));
  EXPECT_EQ(MUSTER_OK, muster_lock_recover(lock, nothing, nullptr));
  EXPECT_EQ(MUSTER_OK, muster_lock_execute(lock, nothing, nullptr));
}

TEST_F(SharedLock, WhoWaitsWithATimeIsToldOfAKilledHolder) {
  const HangGuard guard(30);
  make();
  Child killed([&] {
    if (muster_lock_acquire(attached()) != MUSTER_OK) _exit(2);
    kill(getpid(), SIGKILL);
  });
  EXPECT_NE("", killed.wait());
  EXPECT_EQ(MUSTER_EPEER, muster_lock_timed_acquire(lock, patience_ns));
}

// Its number means another thread here, or none: nobody takes the lock from it.
TEST_F(SharedLock, AHolderInAnotherPidNamespaceIsNotLookedAfter) {
  const HangGuard guard(30);
  make();
  const Shared<std::atomic<int>> holds;
  Child outside([&] {
    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
      *holds = -1;
      _exit(0);
    }
    const pid_t inside = fork();  // pid 1 in there
    if (inside == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      muster_lock* const mine = attached();
      if (muster_lock_acquire(mine) != MUSTER_OK) _exit(2);
      *holds = 1;
      usleep(100'000);
      ++*count;
      _exit(muster_lock_release(mine) == MUSTER_OK ? 0 : 3);
    }
    int status = -1;
    waitpid(inside, &status, 0);
    _exit(status == 0 ? 0 : 4);
  });
  while (*holds == 0) sched_yield();
  if (*holds < 0) GTEST_SKIP() << "no right to make a PID namespace";
  EXPECT_EQ(MUSTER_OK, muster_lock_execute(lock, increment, count)) << muster_last_error();
  EXPECT_EQ(2, *count);
  EXPECT_EQ("", outside.wait());
}

// A number that is used again is another one's: the bits above it say so.
TEST_F(SharedLock, ANumberThatIsUsedAgainIsNotTheHolders) {
  const HangGuard guard(30);
  make();
  ASSERT_EQ(MUSTER_OK, muster_lock_acquire(lock));
  std::atomic<std::uint32_t>* const word = holder_of(memory);
  ASSERT_NE(nullptr, word);
  Child lives([&] {
    *word = *word ^ (std::uint32_t{5} << 23);
    if (muster_lock_execute(attached(), nothing, nullptr) != MUSTER_EPEER) _exit(2);
  });
  EXPECT_EQ("", lives.wait());
  EXPECT_EQ(MUSTER_OK, muster_lock_release(lock));
  EXPECT_EQ(MUSTER_EPEER, muster_lock_execute(lock, nothing, nullptr));
  EXPECT_EQ(MUSTER_OK, muster_lock_recover(lock, nothing, nullptr));
  EXPECT_EQ(MUSTER_OK, muster_lock_execute(lock, nothing, nullptr));
}

// What was there is left there, and all are told, though the one that is named lives.
TEST_F(SharedLock, AWordThatIsAnothersIsLeftByItsHolder) {
  const HangGuard guard(30);
  make();
  ASSERT_EQ(MUSTER_OK, muster_lock_acquire(lock));
  std::atomic<std::uint32_t>* const word = holder_of(memory);
  ASSERT_NE(nullptr, word);
  const std::uint32_t mine = *word;
  *word = 77 << 23;
  EXPECT_EQ(MUSTER_OK, muster_lock_release(lock));
  EXPECT_EQ(std::uint32_t{77 << 23}, *word);
  EXPECT_EQ(MUSTER_EPEER, muster_lock_execute(lock, nothing, nullptr)) << "nobody has it";
  *word = mine;  // who waits does not have it
  EXPECT_EQ(MUSTER_OK, muster_lock_recover(lock, nothing, nullptr));
  EXPECT_EQ(MUSTER_OK, muster_lock_execute(lock, nothing, nullptr));
}

/// Three processes take a lock again and again, without a limit, while a fourth writes random words
/// and flips bits, anywhere in its memory. Whoever is refused is told that somebody died; some set
/// it right. Who attaches then may find no lock any more.
void overwrite_at_random(std::uint64_t seed) {
  const SharedMemory memory(muster_lock_memory());
  muster_lock_options options;
  muster_lock_options_init(&options);
  options.memory = memory.data();
  muster_lock* lock = nullptr;
  if (muster_lock_create(&lock, &options) != MUSTER_OK) _exit(2);
  options.attach = 1;
  Random random(seed);
  const Shared<std::atomic<int>> attached;
  const Shared<std::atomic<bool>> end;
  Child clients([&] {
    const std::string failure = run_processes(3, [&](unsigned) {
      muster_lock* mine = nullptr;
      if (muster_lock_create(&mine, &options) != MUSTER_OK) _exit(3);
      ++*attached;
      for (int refused = 0; !*end;) {
        const int status = muster_lock_execute(mine, nothing, nullptr);
        if (status != MUSTER_OK && status != MUSTER_EPEER) _exit(4);
        if (status == MUSTER_EPEER && ++refused % 4 == 0 &&
            muster_lock_recover(mine, nothing, nullptr) != MUSTER_OK) {
          _exit(5);
        }
        sched_yield();
      }
      muster_lock_destroy(mine);
      const int again = muster_lock_create(&mine, &options);
      if (again != MUSTER_OK && again != MUSTER_EINVAL) _exit(6);
    });
    if (!failure.empty()) _exit(7);
  });
  auto* const words = reinterpret_cast<std::atomic<std::uint32_t>*>(memory.data());
  const auto count = static_cast<unsigned>(memory.size() / sizeof(std::uint32_t));
  while (*attached < 3) sched_yield();
  for (int i = 0; i < 100; ++i) {
    std::atomic<std::uint32_t>& word = words[random.below(count)];
    if (random.one_in(2)) {
      word = static_cast<std::uint32_t>(random.next());
    } else {
      word ^= std::uint32_t{1} << random.below(32);
    }
    usleep(random.below(500));
  }
  *end = true;
  if (const std::string failure = clients.wait(); !failure.empty()) _exit(8);
  const int status = muster_lock_execute(lock, nothing, nullptr);
  if (status != MUSTER_OK && status != MUSTER_EPEER) _exit(9);
  if (muster_lock_recover(lock, nothing, nullptr) != MUSTER_OK) _exit(10);
  if (muster_lock_execute(lock, nothing, nullptr) != MUSTER_OK) _exit(11);
  muster_lock_destroy(lock);
}

TEST_F(SharedLock, GarbageHangsAndCrashesNobody) {
  const HangGuard guard(60);
  constexpr unsigned at_once = 8;
  const unsigned each = fault_rounds() < 12 ? 3 : 2 * fault_rounds() + 1;  // 200 in all
  const std::uint64_t first = case_seed();
  EXPECT_EQ("", run_processes(at_once,
                              [&](unsigned process) {
                                for (unsigned n = 0; n < each; ++n)
                                  overwrite_at_random(first + n * at_once + process);
                              }))
      << replay_command();
}

}  // namespace
}  // namespace muster::test
