// SPDX-License-Identifier: BSD-3-Clause
// Sections that only read: side by side where the kind has readers, else like all others.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>

#include "harness.hpp"
#include "muster/lock.hpp"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

TEST(Readers, TimeOfSectionsThatOthersDoNotShareIsCounted) {
  for (const char* kind : {"auto", "mcs", "rcl", "pthread-mutex", "phase-fair"}) {
    muster::lock lock(muster::lock_options{.kind = kind, .share = 2ms});
    lock.execute_shared([] { std::this_thread::sleep_for(3ms); });
    const bool has_readers = kind == std::string("phase-fair");
    EXPECT_EQ(lock.counters().section_ns < 3'000'000, has_readers) << kind;
  }
}

// The words are plain: ThreadSanitizer sees what is not ordered.
TEST(Readers, FindWhatWritersLeave) {
  const HangGuard guard(120);
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    muster::lock lock(*kind);
    int count = 0;
    int twice = 0;
    std::atomic<bool> torn = false;
    run_threads(4, [&](unsigned thread) {
      for (int turn = 0; turn < 300; ++turn) {
        if ((static_cast<int>(thread) + turn) % 3 == 0) {
          lock.execute([&] { twice = 2 * ++count; });
        } else if (lock.execute_shared([&] { return twice != 2 * count; })) {
          torn = true;
        }
      }
    });
    EXPECT_FALSE(torn) << *kind;
    EXPECT_EQ(400, lock.execute_shared([&] { return count; })) << *kind;
  }
}

// Each waits in its section for the other one.
TEST(Readers, AreSideBySide) {
  const muster::guarded<int> number(muster::lock_options{"phase-fair"}, 7);
  for (int turn = 0; turn < 50; ++turn) {
    std::latch both(2);
    run_threads(2, [&](unsigned) {
      EXPECT_EQ(7, number.execute_shared([&](const int& value) {
        both.arrive_and_wait();
        return value;
      }));
    });
  }
}

/// What happens while somebody reads, a writer comes, and after such a time another reader.
std::string order_of_turns(std::chrono::milliseconds between) {
  muster::lock lock("phase-fair");
  std::string order;
  std::latch reads(1);
  std::latch may_end(1);
  std::thread first([&] {
    lock.execute_shared([&] {
      reads.count_down();
      may_end.wait();
    });
  });
  reads.wait();
  EXPECT_FALSE(lock.try_lock());
  lock.execute_shared([&] { order += "tried "; });  // a try that failed keeps nobody out
  std::thread writer([&] { lock.execute([&] { order += "writes "; }); });
  std::this_thread::sleep_for(between);
  std::thread second([&] {
    lock.execute_shared([&] {
      if (may_end.try_wait()) order += "reads";
    });
  });
  std::this_thread::sleep_for(between);
  may_end.count_down();
  first.join();
  writer.join();
  second.join();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
  return order;
}

// Who comes to read after a writer waits for it. On a busy machine the writer may come late.
TEST(Readers, TakeTurnsWithWriters) {
  const HangGuard guard(120);
  std::string order;
  for (auto between = 20ms; between < 10s && order != "tried writes reads"; between *= 4) {
    order = order_of_turns(between);
  }
  EXPECT_EQ("tried writes reads", order);
}

// Two that overlap without end would keep a lock of another kind from its writers.
TEST(Readers, DoNotStarveWriters) {
  muster::lock lock("phase-fair");
  std::atomic<bool> over = false;
  std::latch all_read(3);
  std::thread readers[3];
  for (std::thread& reader : readers) {
    reader = std::thread([&] {
      lock.execute_shared([&] { all_read.arrive_and_wait(); });
      while (!over) lock.execute_shared([] { std::this_thread::sleep_for(1ms); });
    });
  }
  all_read.wait();
  for (int turn = 0; turn < 20; ++turn) lock.execute([] {});
  over = true;
  for (std::thread& reader : readers) reader.join();
}

TEST(Readers, AreRefusedWhatWouldWaitForThem) {
  muster::lock lock("phase-fair");
  muster::condition changed(lock);
  muster_lock* const handle = lock.native_handle();
  const auto nothing = [](void*) {};
  lock.execute_shared([&] {
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_execute(handle, nothing, nullptr));
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_execute_shared(handle, nothing, nullptr));
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_post(handle, nothing, nullptr));
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_acquire(handle));
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_try_acquire(handle));
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_release(handle));
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_unlocked(handle, nothing, nullptr));
    EXPECT_THROW(changed.wait(), muster::error);
  });
  lock.execute([&] {
    EXPECT_EQ(MUSTER_EINVAL, muster_lock_execute_shared(handle, nothing, nullptr));
    EXPECT_FALSE(changed.wait_for(0ns));
  });
  EXPECT_EQ(MUSTER_EINVAL, muster_lock_execute_shared(nullptr, nothing, nullptr));
  EXPECT_EQ(MUSTER_EINVAL, muster_lock_execute_shared(handle, nullptr, nullptr));
}

TEST(Readers, HaveTheirOwnErrorsAndOtherLocks) {
  muster::lock lock("phase-fair");
  muster::lock other("phase-fair");
  muster::lock served("rcl");
  int posted = 0;
  EXPECT_THROW(lock.execute_shared([] { throw std::runtime_error("mine"); }), std::runtime_error);
  errno = 0;
  lock.execute_shared([&] {
    EXPECT_EQ(0, errno);
    other.execute_shared([&] { other.native_handle(); });
    other.execute([&] { served.post([&] { ++posted; }); });
    served.execute([&] { other.execute_shared([] {}); });
    errno = EDOM;
  });
  EXPECT_EQ(EDOM, errno);
  EXPECT_EQ(1, served.execute([&] { return posted; }));
  lock.execute([] {});
}

TEST(Readers, AForksChildIsNone) {
  muster::lock lock("phase-fair");
  pid_t child = 0;
  const pid_t parent = getpid();
  lock.execute_shared([&] { child = fork(); });
  if (getpid() != parent) _exit(0);
  int status = -1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  lock.execute([] {});
}

TEST(Readers, ACancelledOneGoes) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer does not follow the unwinding of a cancelled thread";
#endif
  muster::lock lock("phase-fair");
  std::latch reads(1);
  struct Reader {
    muster_lock* lock;
    std::latch* reads;
  } shared{lock.native_handle(), &reads};
  pthread_t thread{};
  ASSERT_EQ(0, pthread_create(
                   &thread, nullptr,
                   [](void* argument) -> void* {
                     muster_lock_execute_shared(
                         static_cast<Reader*>(argument)->lock,
                         [](void* reader) {
                           static_cast<Reader*>(reader)->reads->count_down();
                           for (;;) pause();
                         },
                         argument);
                     return nullptr;
                   },
                   &shared));
  reads.wait();
  ASSERT_EQ(0, pthread_cancel(thread));
  ASSERT_EQ(0, pthread_join(thread, nullptr));
  lock.execute([] {});
}

}  // namespace
}  // namespace muster::test
