// SPDX-License-Identifier: BSD-3-Clause
// The preload's parts, linked instead of preloaded, so that sanitizers and emulators see them.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "muster/memory.h"
#include "run/preload.h"
#include "run/record.hpp"

/// What the report asks, in place of muster-memory's, which this program is without.
extern "C" int muster_memory_get_counters(muster_memory_counters* counters, size_t) {
  *counters = {};
  counters->numa_node = 3;
  counters->bytes = 4096;
  counters->pages_refused = 5;
  counters->first_refusal = EACCES;
  counters->regions_refused = 7;
  counters->first_region_refusal = EPERM;
  counters->threads_adrift = 11;
  return MUSTER_OK;
}

namespace {

struct Named {
  run_mutex mutex;
  const char* name;
};

class RunMutex : public testing::TestWithParam<Named> {
 protected:
  void SetUp() override {
    run_start();
    settings.mutex = GetParam().mutex;
    settings.mutex_name = GetParam().name;
  }
  void TearDown() override { settings.mutex = RUN_MUTEX_THEIRS; }
};

/// A thread made through the preload, as all are there.
template <class Fn>
class Created {
 public:
  explicit Created(Fn fn) : fn_(std::move(fn)) {
    EXPECT_EQ(run_create(&thread_, nullptr, start, this), 0);
  }
  ~Created() { pthread_join(thread_, nullptr); }
  Created(const Created&) = delete;
  Created& operator=(const Created&) = delete;

 private:
  static void* start(void* self) {
    static_cast<Created*>(self)->fn_();
    return nullptr;
  }
  Fn fn_;
  pthread_t thread_{};
};

template <class Fn>
void together(unsigned threads, Fn fn) {
  std::vector<std::unique_ptr<Created<Fn>>> team;
  for (unsigned t = 0; t < threads; ++t) team.push_back(std::make_unique<Created<Fn>>(fn));
}

TEST_P(RunMutex, ExcludesAndCounts) {
  for (const unsigned threads : {2U, 3U, 12U}) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const std::uint64_t locks_before = run_total(RUN_LOCKS);
    unsigned count = 0;
    constexpr unsigned sections = 3000;
    together(threads, [&] {
      for (unsigned i = 0; i < sections; ++i) {
        ASSERT_EQ(run_mutex_lock(&mutex), 0);
        ++count;
        if (i % 512 == 0) sched_yield();
        ASSERT_EQ(run_mutex_unlock(&mutex), 0);
      }
    });
    EXPECT_EQ(count, threads * sections);
    EXPECT_EQ(run_total(RUN_LOCKS) - locks_before, count);
    EXPECT_EQ(run_mutex_destroy(&mutex), 0);
  }
}

TEST_P(RunMutex, SleepsUntilItIsFree) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  bool free = false;
  unsigned entered = 0;
  ASSERT_EQ(run_mutex_lock(&mutex), 0);
  const std::uint64_t slept_before = run_total(RUN_SLEPT);
  std::unique_ptr<Created<std::function<void()>>> team[4];
  for (auto& thread : team) {
    thread = std::make_unique<Created<std::function<void()>>>([&] {
      ASSERT_EQ(run_mutex_lock(&mutex), 0);
      EXPECT_TRUE(free);
      ++entered;
      ASSERT_EQ(run_mutex_unlock(&mutex), 0);
    });
  }
  const auto slept = [&] { return run_total(RUN_SLEPT) - slept_before; };
  for (int left_ms = 300'000; slept() < 4 && left_ms > 0; --left_ms) usleep(1000);
  EXPECT_GE(slept(), 4U) << "who waits does not sleep";
  free = true;
  ASSERT_EQ(run_mutex_unlock(&mutex), 0);
  for (auto& thread : team) thread.reset();
  EXPECT_EQ(entered, 4U);
}

TEST_P(RunMutex, DeadlinesPassAndLeaveNothing) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  ASSERT_EQ(run_mutex_lock(&mutex), 0);
  together(3, [&] {
    timespec until{};
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec = (until.tv_nsec + 20'000'000) % 1'000'000'000;
    if (until.tv_nsec < 20'000'000) ++until.tv_sec;
    EXPECT_EQ(run_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until), ETIMEDOUT);
  });
  ASSERT_EQ(run_mutex_unlock(&mutex), 0);
  together(3, [&] {
    for (int i = 0; i < 100; ++i) {
      timespec until{};
      clock_gettime(CLOCK_REALTIME, &until);
      until.tv_sec += 100;
      ASSERT_EQ(run_mutex_timedlock(&mutex, &until), 0);
      ASSERT_EQ(run_mutex_unlock(&mutex), 0);
    }
  });
  EXPECT_EQ(run_mutex_destroy(&mutex), 0);
}

TEST_P(RunMutex, WaitsForConditions) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  int turn = 0;
  std::atomic<int> next{0};
  constexpr int threads = 3;
  together(threads, [&] {
    const int me = next++;
    for (int i = 0; i < 200; ++i) {
      run_mutex_lock(&mutex);
      while (turn != me) ASSERT_EQ(run_cond_wait(&cond, &mutex), 0);
      turn = (turn + 1) % threads;
      run_cond_broadcast(&cond);
      run_mutex_unlock(&mutex);
    }
  });
  EXPECT_EQ(turn, 0);
  pthread_cond_destroy(&cond);
}

TEST_P(RunMutex, IsKeptWhereTheDeadlineIsNone) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  ASSERT_EQ(run_mutex_lock(&mutex), 0);
  const std::uint64_t locks = run_total(RUN_LOCKS);
  const std::uint64_t waits = run_total(RUN_WAITS);
  timespec soon{};
  clock_gettime(CLOCK_REALTIME, &soon);
  for (const long ns : {-1L, 1'000'000'000L}) {
    const timespec malformed{soon.tv_sec, ns};
    EXPECT_EQ(run_cond_timedwait(&cond, &mutex, &malformed), EINVAL);
    EXPECT_EQ(run_cond_clockwait(&cond, &mutex, CLOCK_REALTIME, &malformed), EINVAL);
  }
  EXPECT_EQ(run_cond_clockwait(&cond, &mutex, CLOCK_THREAD_CPUTIME_ID, &soon), EINVAL);
  EXPECT_EQ(run_total(RUN_LOCKS), locks) << "it was given, and taken again";
  EXPECT_EQ(run_total(RUN_WAITS), waits);
  EXPECT_EQ(run_mutex_unlock(&mutex), 0);
}

TEST_P(RunMutex, KnowsItsOwner) {
  pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  int count = 0;
  together(3, [&] {
    for (int i = 0; i < 300; ++i) {
      for (int depth = 0; depth < 3; ++depth) ASSERT_EQ(run_mutex_lock(&mutex), 0);
      ++count;
      for (int depth = 0; depth < 3; ++depth) ASSERT_EQ(run_mutex_unlock(&mutex), 0);
      ASSERT_EQ(run_mutex_unlock(&mutex), EPERM);
    }
  });
  EXPECT_EQ(count, 900);
}

INSTANTIATE_TEST_SUITE_P(All, RunMutex,
                         testing::Values(Named{RUN_MUTEX_SPIN_THEN_PARK, "spin_then_park"},
                                         Named{RUN_MUTEX_MCS, "mcs"}, Named{RUN_MUTEX_CNA, "cna"}),
                         [](const auto& its) { return its.param.name; });

unsigned first_number;
/// Asked before the C library has its environment, as a library's first constructor may.
[[gnu::constructor(101)]] void ask_too_early() {
  char** const kept = environ;
  environ = nullptr;
  muster::run::my_number();
  first_number = muster::run::my_number();
  environ = kept;
}

TEST(RunThreads, HaveNoRecordBeforeTheStart) { EXPECT_EQ(first_number, 0U); }

// More threads than there are records, one after the other: each gives its record back.
TEST(RunThreads, GiveBackWhatTheyHad) {
  run_start();
  settings.mutex = RUN_MUTEX_MCS;
  for (int i = 0; i < 3; ++i) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    together(8, [&] {
      run_mutex_lock(&mutex);
      run_mutex_unlock(&mutex);
    });
  }
  EXPECT_LE(run_most_threads(), 20U);
  EXPECT_GE(run_total(RUN_CREATED), 24U);
  settings.mutex = RUN_MUTEX_THEIRS;
}

// ThreadSanitizer does not know of thrd_create.
#if defined(__has_feature)
#define RUN_TEST_TSAN __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define RUN_TEST_TSAN 1
#else
#define RUN_TEST_TSAN 0
#endif
#if !RUN_TEST_TSAN
TEST(RunThreads, ThoseOfC11ReturnWhatTheyDo) {
  run_start();
  const std::uint64_t created = run_total(RUN_CREATED);
  thrd_t thread{};
  int given = 40;
  const auto add = [](void* argument) { return *static_cast<int*>(argument) + 2; };
  ASSERT_EQ(run_create_c11(&thread, add, &given), thrd_success);
  int result = 0;
  EXPECT_EQ(thrd_join(thread, &result), thrd_success);
  EXPECT_EQ(result, 42);
  EXPECT_EQ(run_total(RUN_CREATED), created + 1);
}
#endif

TEST(RunThreads, WhatCannotBeMadeIsNotCounted) {
  run_start();
  const std::uint64_t created = run_total(RUN_CREATED);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{1} << 50), 0);
  pthread_t thread{};
  const auto nothing = [](void* argument) { return argument; };
  EXPECT_EQ(run_create(&thread, &attributes, nothing, nullptr), EAGAIN);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(run_total(RUN_CREATED), created);
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What went wrong with memory is said, not only what went well.
TEST(RunReport, SaysWhatWasRefused) {
  run_start();
  const std::string path = testing::TempDir() + "run-report." + std::to_string(getpid());
  settings.json = path.c_str();
  settings.reports = true;
  settings.launcher = getpid();
  testing::internal::CaptureStderr();
  run_note_stderr();
  run_report();
  const std::string said = testing::internal::GetCapturedStderr();
  settings.json = nullptr;
  settings.reports = false;
  const std::string written = contents_of(path);
  std::remove(path.c_str());
  EXPECT_NE(said.find("from NUMA node 3"), std::string::npos) << said;
  EXPECT_NE(said.find("refused 5 (Permission denied)"), std::string::npos) << said;
  EXPECT_NE(said.find("refused to bind 7 regions (Operation not permitted)"), std::string::npos)
      << said;
  EXPECT_NE(said.find("11 times a thread got no arena"), std::string::npos) << said;
  EXPECT_NE(written.find("\"regions_refused\": 7, \"threads_adrift\": 11"), std::string::npos)
      << written;
}

}  // namespace
