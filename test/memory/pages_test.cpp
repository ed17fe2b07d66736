// SPDX-License-Identifier: BSD-3-Clause
#include "memory/pages.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <vector>

#include "machine/error.hpp"
#include "memory/segment.hpp"

namespace {
unsigned moves = 0;
}

extern "C" long syscall(long number, ...) noexcept {
  va_list rest;
  va_start(rest, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_mbind && (arguments[5] & MPOL_MF_MOVE) != 0) ++moves;
  static const auto real = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
              arguments[5]);
}

namespace muster {
namespace {

TEST(Pages, SizesAreTheSystems) {
  EXPECT_EQ(page_size(), static_cast<std::size_t>(getpagesize()));
  EXPECT_GE(line_size(), 64U);
  EXPECT_TRUE(std::has_single_bit(line_size()));
  const long level_1 = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
  EXPECT_GE(static_cast<long>(line_size()), level_1);
}

TEST(Pages, RoundUp) {
  EXPECT_EQ(round_up(0, 64), 0U);
  EXPECT_EQ(round_up(1, 64), 64U);
  EXPECT_EQ(round_up(64, 64), 64U);
  EXPECT_EQ(round_up(65, 64), 128U);
  EXPECT_EQ(round_up(100, 48), 144U);
  EXPECT_EQ(round_up(SIZE_MAX, 1), SIZE_MAX);
  EXPECT_EQ(round_up(SIZE_MAX, SIZE_MAX), SIZE_MAX);
  EXPECT_THROW(round_up(SIZE_MAX, 64), Error);
  EXPECT_THROW(round_up(1, 0), Error);
}

std::vector<unsigned> numa_nodes_with_memory() {
  std::vector<unsigned> nodes;
  for (unsigned node = 0; node < 64; ++node) {
    const std::string path = "/sys/devices/system/node/node" + std::to_string(node);
    if (std::filesystem::exists(path + "/meminfo")) nodes.push_back(node);
  }
  return nodes;
}

TEST(Pages, APageThatDoesNotExistIsOnNoNumaNode) {
  void* const page =
      mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_EQ(numa_of_page(page), -1);
  munmap(page, page_size());
}

TEST(Pages, BlocksAreMovedToEveryNumaNodeAndKeepTheirContents) {
  const auto nodes = numa_nodes_with_memory();
  const auto segment = Segment::create(4 * page_size(), 1);
  std::memset(segment->data(), 0x5a, segment->size());
  if (numa_of_page(segment->data()) < 0) GTEST_SKIP() << "the kernel does not say where pages are";
  for (const unsigned node : nodes) {
    std::byte* const block = segment->data() + page_size();
    if (!bind_to_numa(block, page_size() + 1, node)) {
      GTEST_SKIP() << "mbind is not allowed here";
    }
    EXPECT_EQ(numa_of_page(block), static_cast<int>(node));
    EXPECT_EQ(numa_of_page(block + page_size() + 5), static_cast<int>(node));
    for (std::size_t i = 0; i < segment->size(); ++i) {
      ASSERT_EQ(segment->data()[i], std::byte{0x5a}) << i;
    }
  }
}

// To move takes long, even nothing.
TEST(Pages, OnlyWhatIsElsewhereIsMoved) {
  const std::size_t bytes = 4 * page_size();
  void* const fresh =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(fresh, MAP_FAILED);
  moves = 0;
  if (!bind_to_numa(fresh, bytes, numa_nodes_with_memory().at(0))) {
    GTEST_SKIP() << "mbind is not allowed here";
  }
  EXPECT_EQ(moves, 0U);
  munmap(fresh, bytes);
}

TEST(Pages, BindingIsRefusedWhereItMakesNoSense) {
  const auto segment = Segment::create(2 * page_size(), 1);
  EXPECT_FALSE(bind_to_numa(segment->data() + 8, 8, 0));
  EXPECT_FALSE(bind_to_numa(segment->data(), 0, 0));
  EXPECT_FALSE(bind_to_numa(segment->data(), 8, 4000));
  EXPECT_FALSE(bind_to_numa(segment->data(), 8, 100'000));
  segment->data()[0] = std::byte{1};  // still usable
}

}  // namespace
}  // namespace muster
