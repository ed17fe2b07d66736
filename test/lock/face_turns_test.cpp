// SPDX-License-Identifier: BSD-3-Clause
// How long a client executes others' sections.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "muster/lock.hpp"

namespace muster::test {
namespace {

/// Of sections that were asked for while one was executed: how many one thread has executed in a
/// row, at most.
unsigned longest_turn(const char* kind, unsigned turn_sections) {
  lock lock(lock_options{.kind = kind, .turn_sections = turn_sections});
  constexpr unsigned others = 8;
  std::atomic<unsigned> asking{0};
  std::vector<std::thread::id> executors;
  std::vector<std::thread> threads;
  lock.execute([&] {
    executors.push_back(std::this_thread::get_id());
    for (unsigned i = 0; i < others; ++i) {
      threads.emplace_back([&] {
        ++asking;
        lock.execute([&] { executors.push_back(std::this_thread::get_id()); });
      });
    }
    while (asking < others) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(1 + others, executors.size());
  unsigned longest = 1;
  unsigned in_a_row = 1;
  for (std::size_t i = 1; i < executors.size(); ++i) {
    in_a_row = executors[i] == executors[i - 1] ? in_a_row + 1 : 1;
    longest = std::max(longest, in_a_row);
  }
  return longest;
}

// Of flat-combining a pass over all that ask ends them.
TEST(Turns, EndAfterSoManySections) {
  for (const char* const kind : {"cc-synch", "dsm-synch", "h-synch"}) {
    EXPECT_EQ(1U, longest_turn(kind, 1)) << kind;
    EXPECT_LE(longest_turn(kind, 3), 3U) << kind;
    unsigned longest = 0;  // others may not have come so far in time
    for (int tries = 0; tries < 20 && longest <= 3; ++tries) longest = longest_turn(kind, 0);
    EXPECT_GT(longest, 3U) << kind;
  }
}

TEST(Turns, AreSetOnlyWhereThereAreAny) {
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    const std::string name = *kind;
    const bool has_time = name == "auto" || name == "rcl";
    const bool has_sections = name.find("-synch") != std::string::npos || name == "flat-combining";
    muster_lock_options options;
    muster_lock_options_init(&options);
    options.kind = *kind;
    const auto status = [&] {
      muster_lock* lock = nullptr;
      const int made = muster_lock_create(&lock, &options);
      muster_lock_destroy(lock);
      return made;
    };
    options.turn_ns = 1'000;
    EXPECT_EQ(has_time ? MUSTER_OK : MUSTER_ENOTSUP, status()) << name;
    options.turn_ns = -1;
    EXPECT_EQ(MUSTER_EINVAL, status()) << name;
    options.turn_ns = 0;
    options.turn_sections = 5;
    EXPECT_EQ(has_sections ? MUSTER_OK : MUSTER_ENOTSUP, status()) << name;
  }
}

}  // namespace
}  // namespace muster::test
