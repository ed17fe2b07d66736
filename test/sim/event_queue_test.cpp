// SPDX-License-Identifier: BSD-3-Clause
// The calendar gives back events in the order of time and, at one time, of entering.
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "sim/event_queue.hpp"
#include "sim/random.hpp"

namespace muster::sim {
namespace {

TEST(EventQueue, IsInOrderWhateverTheDistances) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    EventQueue queue;
    std::set<std::tuple<Time, std::uint32_t>> expected;  // numbered as they enter
    Time now = 0;
    std::uint32_t number = 0;
    const std::uint32_t reach = 1U << (4 + random.below(22));
    for (int step = 0; step < 4000; ++step) {
      const bool pushes = step < 3000 && (expected.empty() || random.below(100) < 52);
      if (pushes) {
        // Often the same time, often just ahead, now and then far beyond the calendar's year.
        const std::uint32_t kind = random.below(8);
        const Time ahead = kind == 0   ? 0
                           : kind == 1 ? Time{random.below(4)}
                           : kind == 2 ? Time{random.below(reach)} * 64
                                       : Time{random.below(reach)};
        queue.push(now + ahead, EventKind::look, number);
        expected.emplace(now + ahead, number++);
      } else if (!expected.empty()) {
        ASSERT_FALSE(queue.empty());
        const Event event = queue.pop();
        const auto [time, of] = *expected.begin();
        ASSERT_EQ(event.time, time) << "seed " << seed;
        ASSERT_EQ(event.of, of) << "seed " << seed;
        expected.erase(expected.begin());
        now = time;
      }
    }
    while (!expected.empty()) {
      const Event event = queue.pop();
      ASSERT_EQ(event.of, std::get<1>(*expected.begin())) << "seed " << seed;
      expected.erase(expected.begin());
    }
    EXPECT_TRUE(queue.empty());
  }
}

TEST(EventQueue, WhatIsLateHappensNow) {
  EventQueue queue;
  queue.push(1000, EventKind::look, 1);
  EXPECT_EQ(queue.pop().time, 1000);
  queue.push(10, EventKind::look, 2);
  EXPECT_EQ(queue.pop().time, 1000);
}

}  // namespace
}  // namespace muster::sim
