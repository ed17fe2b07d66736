// SPDX-License-Identifier: BSD-3-Clause
// What is copied with a request, and back: by C's call, and where lock::execute() does it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "guard.hpp"
#include "harness.hpp"
#include "muster/lock.hpp"

namespace muster::test {
namespace {

constexpr std::size_t word = sizeof(std::uint64_t);

/// Each section adds to all words, and tells its argument's place in the last one.
template <std::size_t words>
struct Request {
  std::array<std::uint64_t, words> values{};
  static void run(void* argument) {
    auto& mine = *static_cast<Request*>(argument);
    for (std::uint64_t& value : mine.values) ++value;
    mine.values.back() = reinterpret_cast<std::uintptr_t>(argument);
  }
};

template <std::size_t words>
void expect_back(muster_lock* lock, const char* kind, bool copied) {
  Request<words> mine;
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    ASSERT_EQ(MUSTER_OK, muster_lock_execute_copy(lock, Request<words>::run, &mine, sizeof mine));
    for (std::size_t at = 0; at + 1 < words; ++at) EXPECT_EQ(turn, mine.values[at]) << kind << at;
    EXPECT_EQ(copied, mine.values.back() != reinterpret_cast<std::uintptr_t>(&mine)) << kind;
  }
}

TEST(Copy, ComesBackFromEachKind) {
  const HangGuard guard(120);
  for (const char* const* kind = muster_lock_names(); *kind != nullptr; ++kind) {
    muster::lock lock(*kind);
    const bool copied = *kind == std::string("rcl");
    expect_back<1>(lock.native_handle(), *kind, copied);
    expect_back<5>(lock.native_handle(), *kind, copied);
    expect_back<6>(lock.native_handle(), *kind, false);  // more than MUSTER_LOCK_COPY_MAX
  }
}

TEST(Copy, IsNoneWhereItCannotBe) {
  muster::lock lock("rcl");
  alignas(word) unsigned char bytes[4 * word] = {};
  const auto nothing = [](void*) {};
  for (const auto& [offset, size] : {std::pair<int, int>{4, 16}, {0, 12}, {0, 0}}) {
    unsigned char* place = bytes + offset;
    static unsigned char* seen;
    const auto section = [](void* argument) { seen = static_cast<unsigned char*>(argument); };
    ASSERT_EQ(MUSTER_OK, muster_lock_execute_copy(lock.native_handle(), section, place,
                                                  static_cast<std::size_t>(size)));
    EXPECT_EQ(place, seen) << offset << ' ' << size;
  }
  EXPECT_EQ(MUSTER_EINVAL, muster_lock_execute_copy(nullptr, nothing, bytes, word));
  EXPECT_EQ(MUSTER_EINVAL, muster_lock_execute_copy(lock.native_handle(), nullptr, bytes, word));
}

// A section in a section, and one whose caller has something pending, are copied or not: nobody
// can tell.
TEST(Copy, OfSectionsInSections) {
  muster::lock outer("rcl");
  muster::lock inner("rcl");
  unsigned sum = 0;
  for (unsigned turn = 0; turn < 100; ++turn) {
    outer.post([&sum] { ++sum; });
    const unsigned got =
        outer.execute([&] { return inner.execute([&, turn] { return turn; }) + 1; });
    EXPECT_EQ(turn + 1, got);
  }
  EXPECT_EQ(100U, outer.execute([&] { return sum; }));
}

TEST(Copy, LeavesWhatASectionReturnsOrThrows) {
  for (const char* kind : {"rcl", "auto", "cc-synch"}) {
    muster::lock lock(kind);
    int number = 0;
    const std::string text(100, 'x');
    for (int turn = 0; turn < 3; ++turn) {
      EXPECT_EQ(turn + 1, lock.execute([&] { return ++number; }));
      EXPECT_EQ(&number, &lock.execute([&]() -> int& { return number; }));
      EXPECT_EQ(text, lock.execute([&] { return text; }));
      EXPECT_EQ(7, *lock.execute([] { return std::make_unique<int>(7); }));
      try {
        lock.execute([&] { throw std::runtime_error(text); });
        FAIL() << kind;
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(text, error.what());
      }
    }
  }
}

TEST(Copy, KeepsWhatASectionCaptures) {
  muster::lock lock("rcl");
  struct alignas(64) Wide {
    unsigned char first = 3;
  } wide;
  const std::array<int, 30> many = {1, 2, 3};
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(lock.execute([wide] {
      return wide.first == 3 && reinterpret_cast<std::uintptr_t>(&wide) % alignof(Wide) == 0;
    }));
    EXPECT_EQ(3, lock.execute([many] { return many[2]; }));
    int calls = 0;
    auto counts = [calls]() mutable { return ++calls; };
    EXPECT_EQ(1, lock.execute(counts));
    EXPECT_EQ(2, lock.execute(counts)) << "the section itself, no copy, has changed";
    muster::guarded<int> number(muster::lock_options{"rcl"}, 5);
    auto adds = [calls](int& value) mutable { return value += ++calls; };
    EXPECT_EQ(6, number.execute(adds));
    EXPECT_EQ(8, number.execute(adds)) << "likewise";
  }
}

// Longer than a client looks for its answer at once; and the lock is away in the middle.
TEST(Copy, StaysWhileASectionLasts) {
  for (const bool unlocks : {false, true}) {
    muster::lock lock(muster::lock_options{.kind = "rcl", .unlocks = unlocks});
    std::uint64_t count = 0;
    run_threads(4, [&](unsigned thread) {
      for (int turn = 0; turn < 20; ++turn) {
        const auto got = lock.execute([&, thread] {
          ++count;
          const auto wait = [] { std::this_thread::sleep_for(std::chrono::microseconds(300)); };
          unlocks ? lock.unlocked(wait) : wait();
          return thread;
        });
        EXPECT_EQ(thread, got);
      }
    });
    EXPECT_EQ(80U, count);
  }
}

TEST(Copy, OfManyThreads) {
  const HangGuard guard(120);
  for (const char* kind : {"rcl", "auto"}) {
    muster::guarded<std::uint64_t> count(muster::lock_options{kind}, 0U);
    std::atomic<std::uint64_t> sum = 0;
    run_threads(4, [&](unsigned) {
      std::uint64_t mine = 0;
      for (int turn = 0; turn < 10'000; ++turn) {
        mine += count.execute([](std::uint64_t& next) { return next++; });
      }
      sum += mine;
    });
    EXPECT_EQ(40'000U * 39'999U / 2, sum) << kind;  // each number once
  }
}

}  // namespace
}  // namespace muster::test
