// SPDX-License-Identifier: BSD-3-Clause
// Plain data on a machine small enough to calculate by hand: private caches of 16 lines, shared
// ones of 64, 10 ns inside a die, 100 ns between the two, 50 ns for memory, 64 ns a line through
// it.
#include <gtest/gtest.h>

#include "machine/error.hpp"
#include "sim/modelled.hpp"
#include "sim/random.hpp"
#include "small_machine.hpp"

namespace muster::sim {
namespace {

constexpr unsigned line = 64;

class DataTest : public testing::Test {
 protected:
  DataTest() {
    parameters_.hit_ns = 1;
    parameters_.memory_ns = 50;
    parameters_.cache_line = line;
    parameters_.private_cache_kib = 1;
    parameters_.private_ways = 4;
    parameters_.shared_cache_kib = 4;
    parameters_.shared_ways = 8;
    parameters_.memory_bandwidth = 1;
    parameters_.store_entries = 4;
  }

  void make() { memory_ = std::make_unique<DataMemory>(geometry_, parameters_, mechanisms_); }

  /// One access after another; how long they take together.
  double walk_ns(unsigned participant, std::uint64_t address, unsigned lines, bool writes = false) {
    const Time begin = now_;
    for (unsigned n = 0; n < lines; ++n) {
      now_ = memory_->access(participant, address + std::uint64_t{n} * line, writes, now_);
    }
    return to_ns(now_ - begin);
  }

  Geometry geometry_ = two_dies();
  Parameters parameters_;
  Mechanisms mechanisms_ = Mechanisms::all().without(Mechanism::prefetch);
  std::unique_ptr<DataMemory> memory_;
  Time now_ = 0;
};

TEST_F(DataTest, LocalAndRemoteMemoryDiffer) {
  make();
  const std::uint64_t near = memory_->allocate(line, 0);
  const std::uint64_t far = memory_->allocate(line, 1);
  EXPECT_DOUBLE_EQ(walk_ns(0, near, 1), 10 + 50 + 64);
  EXPECT_DOUBLE_EQ(walk_ns(0, far, 1), 100 + 50 + 64);
  EXPECT_DOUBLE_EQ(walk_ns(0, near, 1), 1);
  EXPECT_DOUBLE_EQ(walk_ns(0, far, 1), 1);
}

TEST_F(DataTest, DiesOfOneNumaNodeShareItsMemory) {
  geometry_.memory_of_ = {0, 0};
  make();
  const std::uint64_t array = memory_->allocate(2 * line, 1);
  EXPECT_DOUBLE_EQ(walk_ns(0, array, 1), 10 + 50 + 64);
  EXPECT_DOUBLE_EQ(walk_ns(2, array + line, 1), 10 + 50 + 64);
  EXPECT_EQ(memory_->counts(0).memory, 1U);
  EXPECT_EQ(memory_->counts(0).far_memory, 0U);
}

TEST_F(DataTest, FarMemoryTakesAsLongAsTheMachineSays) {
  parameters_.memory_far_ns = 200;
  make();
  const std::uint64_t far = memory_->allocate(line, 1);
  EXPECT_DOUBLE_EQ(walk_ns(0, far, 1), 200 + 64);
  EXPECT_EQ(memory_->counts(0).far_memory, 1U);
}

TEST_F(DataTest, AnArrayMayBeLargerThanThisMachine) {
  make();
  memory_->allocate(line, 1);
  const std::uint64_t array = memory_->allocate(std::uint64_t{200} << 30, 0);
  EXPECT_DOUBLE_EQ(walk_ns(0, array + (std::uint64_t{199} << 30), 1), 10 + 50 + 64);
  EXPECT_THROW(memory_->allocate(std::uint64_t{200} << 30, 0), Error);
}

TEST_F(DataTest, WhatFitsStaysWhatDoesNotGoes) {
  make();
  const std::uint64_t array = memory_->allocate(4096 * 4, 0);
  walk_ns(0, array, 16);
  EXPECT_DOUBLE_EQ(walk_ns(0, array, 16), 16);  // the private cache holds it
  walk_ns(0, array, 32);
  EXPECT_DOUBLE_EQ(walk_ns(0, array, 32), 32 * 10);  // the shared one does
  walk_ns(0, array, 128);
  EXPECT_DOUBLE_EQ(walk_ns(0, array, 128), 128 * (10 + 50 + 64));  // least recently used: none left
  EXPECT_EQ(memory_->counts(0).accesses, 16U + 16 + 32 + 32 + 128 + 128);
}

TEST_F(DataTest, TheLeastRecentlyUsedOfASetGoes) {
  Cache cache(8, 2);  // 4 sets
  for (const std::uint32_t in : {0U, 4U}) cache.insert(in);
  EXPECT_NE(cache.find(0), nullptr);
  cache.insert(8);
  EXPECT_EQ(cache.peek(4), nullptr);
  EXPECT_NE(cache.peek(0), nullptr);
  EXPECT_NE(cache.peek(8), nullptr);
  cache.insert(1);  // another set
  EXPECT_NE(cache.peek(0), nullptr);
}

TEST_F(DataTest, AWriterTakesEverybodysCopy) {
  make();
  const std::uint64_t array = memory_->allocate(line, 0);
  walk_ns(0, array, 1);
  walk_ns(1, array, 1);
  walk_ns(2, array, 1);
  EXPECT_DOUBLE_EQ(walk_ns(1, array, 1, true), 1);
  EXPECT_DOUBLE_EQ(walk_ns(1, array, 1, true), 1);
  EXPECT_DOUBLE_EQ(walk_ns(0, array, 1), 10);       // from core 1
  EXPECT_DOUBLE_EQ(walk_ns(2, array, 1), 10 + 90);  // from the other die
  EXPECT_DOUBLE_EQ(walk_ns(2, array, 1), 1);
  EXPECT_DOUBLE_EQ(walk_ns(2, array, 1, true), 1);
  EXPECT_DOUBLE_EQ(walk_ns(0, array, 1), 100);
}

TEST_F(DataTest, AStreamIsPrefetchedARandomWalkIsNot) {
  parameters_.memory_bandwidth = 64;  // 1 ns a line
  make();
  const std::uint64_t slow = memory_->allocate(64 * line, 0);
  const double without = walk_ns(0, slow, 32);
  mechanisms_ = Mechanisms::all();
  make();
  const std::uint64_t fast = memory_->allocate(64 * line, 0);
  const double with = walk_ns(0, fast, 32);
  EXPECT_LT(with, 0.6 * without);
  EXPECT_EQ(memory_->counts(0).private_misses, 1U);

  now_ = 0;
  make();
  const std::uint64_t array = memory_->allocate(4096 * line, 0);
  Random random(1);
  double scattered = 0;
  for (int n = 0; n < 32; ++n) scattered += walk_ns(0, array + random.below(2048) * 2 * line, 1);
  EXPECT_GT(scattered, 0.95 * without);
}

TEST_F(DataTest, AMemoryServesOneLineAfterAnother) {
  make();
  const std::uint64_t array = memory_->allocate(64 * line, 0);
  Time last = 0;
  for (unsigned p = 0; p < 4; ++p) {
    last = std::max(last, memory_->access(p, array + std::uint64_t{p} * 8 * line, false, 0));
  }
  EXPECT_EQ(last, from_ns(3 * 64 + 100 + 50 + 64));
  mechanisms_ = mechanisms_.without(Mechanism::memory_bandwidth);
  make();
  const std::uint64_t again = memory_->allocate(64 * line, 0);
  EXPECT_EQ(memory_->access(0, again, false, 0), from_ns(10 + 50));
}

TEST_F(DataTest, WithoutCachesEverythingHits) {
  mechanisms_ = mechanisms_.without(Mechanism::data_caches);
  make();
  const std::uint64_t array = memory_->allocate(4096, 1);
  EXPECT_DOUBLE_EQ(walk_ns(0, array, 64), 64);
}

TEST_F(DataTest, ParticipantsTouchItInTheOrderOfTime) {
  StackPool pool;
  Engine engine(geometry_, parameters_, mechanisms_, 1, 1, pool);
  const Modelled::Array array{engine.data().allocate(4096, 0), 4};
  std::vector<std::pair<Time, unsigned>> ends;
  for (const unsigned p : {0U, 2U}) {
    engine.start(
        p,
        [&, p] {
          Modelled port(engine, p);
          for (unsigned n = 0; n < 64; ++n) {
            port.touch(array, n * 16, true);
            ends.emplace_back(engine.clock(p), p);
          }
        },
        from_ns(p * 10000));
  }
  engine.run(10000);
  ASSERT_EQ(ends.size(), 128U);
  EXPECT_TRUE(std::is_sorted(ends.begin(), ends.end()));
  // The second took all from the first's die, which still has them.
  EXPECT_EQ(ends.back().first - ends[64].first, from_ns(63 * 100));
}

}  // namespace
}  // namespace muster::sim
