// SPDX-License-Identifier: BSD-3-Clause
#include "memory/arena.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "machine/error.hpp"

namespace {

/// So many allocations succeed, then none does; less than 0: all do.
int allocations_left = -1;

}  // namespace

// Not inlined: else they seem not to go together.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = allocations_left != 0 ? std::malloc(bytes) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace muster {
namespace {

constexpr std::size_t npos = SubAllocator::npos;

TEST(Arena, RefusesWhatMakesNoSense) {
  SubAllocator arena(100);
  EXPECT_THROW(arena.free(0), Error);
  EXPECT_THROW(arena.allocate(0, 1), Error);
  EXPECT_THROW(arena.allocate(1, 0), Error);
  const std::size_t offset = arena.allocate(10, 1);
  EXPECT_THROW(arena.free(offset + 1), Error);
  arena.free(offset);
  EXPECT_THROW(arena.free(offset), Error);
  EXPECT_EQ(arena.allocate(100, 1), 0U);
}

TEST(Arena, HugeRequestsDoNotOverflow) {
  SubAllocator arena(100);
  EXPECT_EQ(arena.allocate(1, 1), 0U);
  EXPECT_EQ(arena.allocate(npos, 1), npos);
  EXPECT_EQ(arena.allocate(npos, npos), npos);
  EXPECT_EQ(arena.allocate(1, npos), npos);
  EXPECT_EQ(arena.allocate(99, 1), 1U);
}

TEST(Arena, AnEmptyBufferGivesNothing) {
  SubAllocator arena(0);
  EXPECT_EQ(arena.allocate(1, 1), npos);
}

/// One owner per byte: slow and plain.
class Oracle {
 public:
  explicit Oracle(std::size_t size) : owner_(size, 0) {}

  bool fits(std::size_t bytes, std::size_t alignment) const {
    std::size_t run = 0;
    for (std::size_t at = owner_.size(); at-- > 0;) {
      run = owner_[at] == 0 ? run + 1 : 0;
      if (run >= bytes && at % alignment == 0) return true;
    }
    return false;
  }
  bool all(std::size_t offset, std::size_t bytes, int owner) const {
    if (offset > owner_.size() || bytes > owner_.size() - offset) return false;
    for (std::size_t i = 0; i < bytes; ++i) {
      if (owner_[offset + i] != owner) return false;
    }
    return true;
  }
  void set(std::size_t offset, std::size_t bytes, int owner) {
    for (std::size_t i = 0; i < bytes; ++i) owner_[offset + i] = owner;
  }

 private:
  std::vector<int> owner_;
};

TEST(Arena, RandomUseAgreesWithAnOracle) {
  constexpr std::size_t size = 700;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    SubAllocator arena(size);
    Oracle oracle(size);
    struct Piece {
      std::size_t offset, bytes;
      int owner;
    };
    std::vector<Piece> pieces;
    std::size_t refused = 0;
    for (int step = 1; step <= 1000; ++step) {
      if (pieces.empty() || random() % 100 < 55) {
        const std::size_t bytes = 1 + random() % 60;
        const std::size_t alignment = 1 + random() % 40;
        const bool fits = oracle.fits(bytes, alignment);
        const std::size_t offset = arena.allocate(bytes, alignment);
        ASSERT_EQ(offset != npos, fits) << "step " << step;
        if (!fits) {
          ++refused;
          continue;
        }
        ASSERT_EQ(offset % alignment, 0U);
        ASSERT_TRUE(oracle.all(offset, bytes, 0)) << "step " << step << ": taken already";
        oracle.set(offset, bytes, step);
        pieces.push_back({offset, bytes, step});
      } else {
        std::swap(pieces[random() % pieces.size()], pieces.back());
        const Piece piece = pieces.back();
        pieces.pop_back();
        ASSERT_TRUE(oracle.all(piece.offset, piece.bytes, piece.owner));
        arena.free(piece.offset);
        oracle.set(piece.offset, piece.bytes, 0);
      }
    }
    EXPECT_GT(refused, 0U) << "the test never filled the arena";
    for (const Piece& piece : pieces) arena.free(piece.offset);
    EXPECT_EQ(arena.allocate(size, 1), 0U);
  }
}

TEST(Arena, WithoutMemoryNothingIsDoneAndAllCanBeGivenBack) {
  for (int at = 0; at < 3; ++at) {
    SubAllocator arena(100);
    const std::size_t first = arena.allocate(10, 1);
    allocations_left = at;
    try {
      EXPECT_EQ(arena.allocate(20, 50), 50U);  // a gap before it, and a rest behind
      allocations_left = 0;
      arena.free(50);
    } catch (const std::bad_alloc&) {
    }
    allocations_left = 0;
    arena.free(first);
    allocations_left = -1;
    EXPECT_EQ(arena.allocate(100, 1), 0U) << at;
  }
}

}  // namespace
}  // namespace muster
