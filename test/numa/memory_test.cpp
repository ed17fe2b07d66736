// SPDX-License-Identifier: BSD-3-Clause
// Pages move to a NUMA node, also while they are written, and are counted. That blocks follow
// servers: allocation_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "memory/migration.hpp"
#include "memory/pages.hpp"
#include "pages_of.hpp"

namespace muster::test {
namespace {

using ::testing::ElementsAre;

/// Private pages, not yet there.
class Pages {
 public:
  explicit Pages(std::size_t count) : count_(count) {
    void* const memory =
        mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<unsigned char*>(memory);
    madvise(data_, bytes(), MADV_NOHUGEPAGE);
  }
  ~Pages() { munmap(data_, bytes()); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::size_t bytes() const { return count_ * page_size(); }
  unsigned char* data() const { return data_; }
  unsigned char* page(std::size_t number) const { return data_ + number * page_size(); }

  /// Fills pages [first, end) with their numbers, on a CPU.
  void touch_on(unsigned cpu, std::size_t first, std::size_t end) {
    std::thread([&] {
      ASSERT_TRUE(bind_to_cpu(cpu));
      for (std::size_t number = first; number < end; ++number) {
        std::memset(page(number), static_cast<int>(number % 251), page_size());
      }
    }).join();
  }

 private:
  std::size_t count_;
  unsigned char* data_ = nullptr;
};

TEST(Memory, PagesAtTheEndsOfABlockComeAlong) {
  Pages pages(4);
  pages.touch_on(0, 0, 4);
  const Migration migration = migrate_to_numa(pages.page(1) + page_size() - 1, page_size() + 2, 2);
  EXPECT_EQ(migration.moved, 3U);
  EXPECT_THAT(numa_of_pages(pages.data(), pages.bytes()), ElementsAre(0, 2, 2, 2));
}

TEST(Memory, WhatIsWrittenMeanwhileStays) {
  Pages pages(64);
  pages.touch_on(0, 0, 64);
  std::atomic<bool> stop{false};
  auto& word = *reinterpret_cast<std::atomic<unsigned>*>(pages.page(17));
  word = 0;
  unsigned written = 0;
  std::thread writer([&] {
    bind_to_cpu(4);
    while (!stop) {
      word.fetch_add(1);
      ++written;
    }
  });
  for (unsigned turn = 0; turn < 40; ++turn) {
    const unsigned numa = turn % 4 == 3 ? 0 : turn % 4 + 1;
    const Migration migration = migrate_to_numa(pages.data(), pages.bytes(), numa);
    EXPECT_EQ(migration.moved + migration.already_there + migration.refused, 64U);
    EXPECT_GE(migration.moved, 63U);
  }
  stop = true;
  writer.join();
  EXPECT_EQ(word, written);
}

TEST(Memory, WhatCannotBeMovedIsReported) {
  Pages pages(8);
  pages.touch_on(1, 0, 8);
  const Migration migration = migrate_to_numa(pages.data(), pages.bytes(), 9);  // no such
  EXPECT_EQ(migration.refused, 8U);
  EXPECT_EQ(migration.first_refusal, ENODEV);
  EXPECT_THAT(numa_nodes_of_pages(pages.data(), pages.bytes()), ElementsAre(1));
}

}  // namespace
}  // namespace muster::test
