// SPDX-License-Identifier: BSD-3-Clause
#include "machine/run_threads.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

namespace muster::test {
namespace {

TEST(RunThreads, RunsThemAllAtOnce) {
  constexpr unsigned all = 8;
  std::atomic<unsigned> here{0};
  std::atomic<unsigned> numbers{0};
  run_threads(all, [&](unsigned number) {
    numbers.fetch_or(1U << number);
    here.fetch_add(1);
    while (here.load() < all) std::this_thread::yield();
  });
  EXPECT_EQ(numbers, (1U << all) - 1);
}

TEST(RunThreads, RunsNoneWhereNotAllCanBeMade) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit few{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (100U << 20),
                   before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &few), 0);
  std::atomic<unsigned> ran{0};
  std::string what;
  try {
    run_threads(1000, [&](unsigned) { ++ran; });
  } catch (const Error& error) {
    what = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(what, testing::MatchesRegex("[0-9]+ of 1000 threads could be made.*ulimit -u.*"));
  EXPECT_EQ(ran, 0U);
}

}  // namespace
}  // namespace muster::test
