// SPDX-License-Identifier: BSD-3-Clause
// A server keeps the lock of its last request, if that is one of `rcl`, until somebody wants it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "delegation/condition.hpp"
#include "delegation/station.hpp"
#include "machine/hardware.hpp"
#include "trial.hpp"
#include "with_server.hpp"

namespace muster::test {
namespace {

class KeptLock : public WithServer {
 protected:
  bool is_held(Word lock) const {
    return station_->desk(lock).held->value.load(std::memory_order_acquire) != 0;
  }
};

TEST_F(KeptLock, StaysWhileTheServerPollsAndNotWhileItSleeps) {
  const auto lock = make();  // its number is 0
  auto nothing = [] {};
  // Not each time: where this thread gets the CPU when the server yields, the lock is free; and a
  // server that keeps none may be interrupted before it gives it, once in many thousand times.
  constexpr unsigned often = 200;
  unsigned kept = 0;
  for (int tries = 0; kept < often && tries < 100'000; ++tries) {
    lock->execute(section_of(nothing));
    for (int pauses = 0; pauses < 20; ++pauses) relax();  // a section's end takes less
    if (is_held(0)) ++kept;
  }
  EXPECT_EQ(often, kept);
  const std::uint64_t slept = station_->counters().sleeps;
  while (station_->counters().sleeps == slept) sleep_ms(1);
  EXPECT_FALSE(is_held(0));
}

TEST_F(KeptLock, IsGivenBackForAnotherOne) {
  const auto one = make();
  const auto other = make();
  std::uint64_t count = 0;
  std::uint64_t expected = 0;
  auto increment = [&] { ++count; };
  for (unsigned i = 0; i < rounds(1000); ++i) {
    one->execute(section_of(increment));
    do {  // a thread that was replaced in the section may give it a little later
      other->execute(section_of(increment));
      ++expected;
    } while (is_held(0));
  }
  EXPECT_EQ(expected + rounds(1000), count);
}

// Nobody waits for ever who wants it and has no request: a lock that ends, a section of another one
// on a spare thread, and one that was woken.
TEST_F(KeptLock, IsGivenToWhoWantsIt) {
  const auto busy = make();
  std::atomic<bool> ends{false};
  auto nothing = [] {};
  std::thread client([&] {
    while (!ends) busy->execute(section_of(nothing));
  });
  for (unsigned i = 0; i < rounds(100); ++i) {
    const auto brief = make();
    brief->execute(section_of(nothing));
  }
  const auto outer = make();
  std::uint64_t nested = 0;
  auto increment = [&] { ++nested; };
  auto around = [&] {
    sleep_ms(1);  // from the second one on a spare is at work meanwhile
    busy->execute(section_of(increment));
  };
  for (unsigned i = 0; i < rounds(50); ++i) outer->execute(section_of(around));
  EXPECT_EQ(rounds(50), nested);

  delegation::Condition condition(*busy);
  std::uint64_t level = 0;
  std::uint64_t seen = 0;
  std::thread waiter([&] {
    auto section = [&] {
      while (seen < rounds(100)) {
        while (level == seen) condition.wait();
        seen = level;
      }
    };
    busy->execute(section_of(section));
  });
  for (std::uint64_t i = 1; i <= rounds(100); ++i) {
    auto raise = [&] {
      level = i;
      condition.signal();
    };
    busy->execute(section_of(raise));
    std::uint64_t now = 0;
    auto look = [&] { now = seen; };
    while (now != i) busy->execute(section_of(look));
  }
  waiter.join();
  ends = true;
  client.join();
}

}  // namespace
}  // namespace muster::test
