// SPDX-License-Identifier: BSD-3-Clause
// RCLAwareMalloc's decisions carried out on real pages: blocks older than the first server move to
// its NUMA node, page by page, and are counted.
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
#include "placement/placer.hpp"

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

TEST(Memory, EarlierBlocksMigrateToTheFirstServer) {
  Pages block(3000);
  block.touch_on(0, 0, 1500);     // NUMA node 0
  block.touch_on(7, 1500, 2500);  // NUMA node 3, where the server will be; the rest is not there

  const Topology topology = Topology::this_machine();
  Placer placer{CoreTree(topology)};
  ASSERT_TRUE(decide_block(placer.tree(), placer.now()).remember);
  const MemoryDecision decision = placer.add_server_at(topology.core_of(5)).memory;
  ASSERT_TRUE(decision.migrate);
  ASSERT_EQ(decision.binding, MemoryDecision::Binding::bind);
  const unsigned numa = *placer.tree().numa_nodes()[*decision.numa].os_index;
  ASSERT_EQ(numa, 3U);

  const Migration migration = migrate_to_numa(block.data(), block.bytes(), numa);
  EXPECT_EQ(migration.moved, 1500U);
  EXPECT_EQ(migration.already_there, 1000U);
  EXPECT_EQ(migration.not_there_yet, 500U);
  EXPECT_EQ(migration.refused, 0U);
  EXPECT_EQ(migration.pages(), 3000U);
  EXPECT_THAT(numa_nodes_of_pages(block.data(), 2500 * page_size()), ElementsAre(3));
  for (std::size_t number = 0; number < 2500; ++number) {
    ASSERT_EQ(*block.page(number), number % 251) << "page " << number;
  }
}

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
