// SPDX-License-Identifier: BSD-3-Clause
// RCLAwareMalloc on four NUMA nodes: where the pages of blocks are as servers come and go, page by
// page, asked past our own code.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <muster/lock.h>
#include <muster/memory.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "allocation/heap.hpp"
#include "pages_of.hpp"

namespace muster::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void servers(std::vector<unsigned> numa_nodes) {
  ASSERT_EQ(muster_memory_servers(numa_nodes.data(), static_cast<unsigned>(numa_nodes.size())),
            MUSTER_OK);
}

muster_memory_counters counters() {
  muster_memory_counters now;
  muster_memory_get_counters(&now, sizeof now);
  return now;
}

/// CPU 4 and 6 are of NUMA node 2, 5 and 7 of 3, and so on: vm.sh.
constexpr unsigned cpu_of_numa(unsigned numa) { return numa / 2 * 4 + numa % 2; }

void on_numa(unsigned numa, const std::function<void()>& work) {
  std::thread([&] {
    ASSERT_TRUE(bind_to_cpu(cpu_of_numa(numa)));
    work();
  }).join();
}

struct Block {
  unsigned char* data;
  std::size_t bytes;
  std::vector<int> pages() const { return numa_of_pages(data, bytes); }
};

constexpr std::size_t sizes[] = {8, 64, 400, 1500, 4096, 20000, 70000, 500000, 3 << 20};

/// Written by a thread on that NUMA node.
std::vector<Block> blocks_touched_on(unsigned numa, unsigned each) {
  std::vector<Block> blocks;
  on_numa(numa, [&] {
    for (const std::size_t bytes : sizes) {
      for (unsigned i = 0; i < (bytes < 100000 ? each : 1); ++i) {
        auto* const data = static_cast<unsigned char*>(muster_alloc(bytes));
        std::memset(data, static_cast<int>(bytes % 251), bytes);
        blocks.push_back({data, bytes});
      }
    }
  });
  return blocks;
}

bool intact(const Block& block) {
  return std::all_of(block.data, block.data + block.bytes,
                     [&](unsigned char byte) { return byte == block.bytes % 251; });
}

void free_all(const std::vector<Block>& blocks) {
  for (const Block& block : blocks) muster_free(block.data);
}

/// The NUMA nodes of all pages of all blocks, each once.
std::vector<int> where(const std::vector<Block>& blocks) {
  std::set<int> all;
  for (const Block& block : blocks) {
    for (const int numa : block.pages()) all.insert(numa);
  }
  return {all.begin(), all.end()};
}

/// Has a thread on that NUMA node write a block. Where those pages are then that were not there
/// before: a huge page brings its neighbours along.
std::vector<int> first_touch(const Block& block, unsigned numa) {
  const std::vector<int> before = block.pages();
  on_numa(numa, [&] { std::memset(block.data, 1, block.bytes); });
  const std::vector<int> after = block.pages();
  std::set<int> nodes;
  for (std::size_t page = 0; page < before.size(); ++page) {
    if (before[page] < 0) nodes.insert(after[page]);
  }
  return {nodes.begin(), nodes.end()};
}

Block block_of(std::size_t mebibytes) {
  const std::size_t bytes = mebibytes << 20;
  return {static_cast<unsigned char*>(muster_alloc(bytes)), bytes};
}

/// Every page of a heap, wherever jemalloc put it to use or did not.
std::vector<int> pages_of_heap(allocation::HeapNumber heap) {
  std::vector<int> all;
  allocation::regions.each_run(
      [&](const std::byte* first, std::size_t bytes, allocation::HeapNumber owner) {
        if (owner != heap) return;
        for (const int numa : numa_of_pages(first, bytes)) all.push_back(numa);
      });
  return all;
}

std::uint64_t count(const std::vector<int>& pages, int what) {
  return static_cast<std::uint64_t>(std::count(pages.begin(), pages.end(), what));
}

/// Whoever frees these and takes as many as `count` new ones gets them on NUMA node 1.
void expect_fresh_blocks_on_1(const std::vector<std::vector<Block>>& freed, unsigned count) {
  std::vector<Block> fresh;
  on_numa(0, [&] {
    muster_free(muster_alloc(1));  // a thread that has only freed yet has no cache
    for (const std::vector<Block>& blocks : freed) free_all(blocks);
    for (unsigned i = 0; i < count; ++i) {
      const std::size_t bytes = sizes[i % 7];
      fresh.push_back({static_cast<unsigned char*>(muster_alloc(bytes)), bytes});
      std::memset(fresh.back().data, 1, bytes);
    }
  });
  EXPECT_THAT(where(fresh), ElementsAre(1));
  free_all(fresh);
}

/// The kernel's policy for the page at an address.
int policy_at(const void* address) {
  int mode = -1;
  if (syscall(SYS_get_mempolicy, &mode, nullptr, 0UL, address, MPOL_F_ADDR) != 0) return -errno;
  return mode;
}

class Aware : public ::testing::Test {
 protected:
  /// The kernel's own thread that gathers pages into huge ones: pages would come and go by
  /// themselves between two looks.
  static void SetUpTestSuite() {
    std::ofstream pause("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs");
    ASSERT_TRUE(pause << 1'000'000'000 << std::flush);
  }
  void SetUp() override { servers({}); }
  void TearDown() override { servers({}); }
};

// The first test: only default memory has been used.
TEST_F(Aware, WhatIsOlderThanTheFirstServerMigratesPageByPage) {
  std::vector<Block> blocks;
  for (const unsigned toucher : {0U, 1U, 2U, 3U}) {
    for (const Block& block : blocks_touched_on(toucher, 40)) blocks.push_back(block);
  }
  const Block lazy = block_of(5);
  ASSERT_THAT(where(blocks), ElementsAre(0, 1, 2, 3));
  const std::vector<int> before = pages_of_heap(allocation::default_heap);
  const std::vector<int> own = pages_of_heap(allocation::heap_of_numa(3));
  const muster_memory_counters then = counters();

  servers({3});

  const muster_memory_counters now = counters();
  const std::vector<int> after = pages_of_heap(allocation::default_heap);
  std::uint64_t present = 0;
  for (const int numa : {0, 1, 2, 3}) present += count(before, numa) + count(own, numa);
  const std::uint64_t there = count(before, 3) + count(own, 3);
  ASSERT_GT(present - there, 100U);
  EXPECT_EQ(now.pages_moved - then.pages_moved, present - there);
  EXPECT_EQ(now.pages_already_there - then.pages_already_there, there);
  EXPECT_EQ(now.pages_not_there_yet - then.pages_not_there_yet,
            before.size() + own.size() - present);
  EXPECT_EQ(now.pages_refused, then.pages_refused) << std::strerror(now.first_refusal);
  EXPECT_EQ(now.regions_refused, 0U) << std::strerror(now.first_region_refusal);
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t page = 0; page < before.size(); ++page) {
    ASSERT_EQ(after[page], before[page] < 0 ? before[page] : 3) << "page " << page;
  }
  for (const Block& block : blocks) ASSERT_TRUE(intact(block));

  // What was allocated before and is touched now comes to lie there too.
  EXPECT_THAT(first_touch(lazy, 0), ElementsAre(3));
  EXPECT_THAT(where({lazy}), ElementsAre(3));
  // What is freed now and handed out again is there.
  free_all(blocks);
  muster_free(lazy.data);
  const std::vector<Block> again = blocks_touched_on(1, 100);
  EXPECT_THAT(where(again), ElementsAre(3));
  free_all(again);
}

TEST_F(Aware, DefaultAllocationIsByFirstTouch) {
  std::vector<Block> blocks;
  for (const unsigned numa : {1U, 2U}) {
    blocks.push_back(block_of(6));
    EXPECT_THAT(first_touch(blocks.back(), numa), ElementsAre(static_cast<int>(numa)));
  }
  free_all(blocks);
}

TEST_F(Aware, TheBindingIsLiftedWhenServersPart) {
  servers({2});
  const std::vector<Block> bound = blocks_touched_on(0, 50);
  const Block lazy = block_of(7);
  EXPECT_EQ(policy_at(lazy.data), MPOL_PREFERRED);
  EXPECT_GT(counters().bytes_bound, 0U);

  servers({2, 1});

  EXPECT_EQ(counters().bytes_bound, 0U);
  allocation::regions.each_run([&](const std::byte* first, std::size_t bytes, auto) {
    for (std::size_t at = 0; at < bytes; at += allocation::RegionMap::granule) {
      ASSERT_EQ(policy_at(first + at), MPOL_DEFAULT);
    }
  });
  EXPECT_THAT(where(bound), ElementsAre(2));  // pages stay where they are
  EXPECT_THAT(first_touch(lazy, 3), ElementsAre(3));
  const Block fresh = block_of(9);
  EXPECT_THAT(first_touch(fresh, 1), ElementsAre(1));
  muster_free(fresh.data);
  muster_free(lazy.data);
  free_all(bound);
}

// The second time around there are blocks everywhere: none comes back from a thread's cache, and
// what strayed while the binding was lifted comes home.
TEST_F(Aware, BlocksAreExactlyThereAfterManyChanges) {
  servers({1});
  const Block stray = block_of(5);
  const std::vector<Block> bound = blocks_touched_on(2, 50);
  servers({1, 2});
  EXPECT_THAT(first_touch(stray, 3), ElementsAre(3));  // of the lifted heap
  const std::vector<Block> by_default = blocks_touched_on(0, 50);
  servers({2});
  const std::vector<Block> other = blocks_touched_on(1, 50);
  EXPECT_THAT(where(other), ElementsAre(2));
  servers({1});
  EXPECT_THAT(where({stray}), ElementsAre(1));
  muster_free(stray.data);
  expect_fresh_blocks_on_1({bound, by_default, other}, 1500);
}

/// Whether no other process has each of these pages: pagemap's bit 56.
std::vector<bool> exclusive_pages_of_heap(allocation::HeapNumber heap) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  std::vector<bool> all;
  allocation::regions.each_run(
      [&](const std::byte* first, std::size_t bytes, allocation::HeapNumber owner) {
        if (owner != heap) return;
        std::vector<std::uint64_t> entries(bytes / page);
        const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(first) / page;
        const std::size_t wanted = entries.size() * sizeof entries[0];
        const ssize_t got =
            pread(pagemap, entries.data(), wanted, static_cast<off_t>(begin * sizeof entries[0]));
        ASSERT_EQ(got, static_cast<ssize_t>(wanted));
        for (const std::uint64_t entry : entries) all.push_back((entry >> 56 & 1) != 0);
      });
  close(pagemap);
  return all;
}

/// The kernel moves a huge page whole when one of its parts is not shared: that cannot be counted
/// beforehand. So without huge pages, in a process of its own.
TEST_F(Aware, WhatCannotBeMovedIsCounted) {
  if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0) {
    const pid_t alone = fork();
    ASSERT_GE(alone, 0);
    if (alone == 0) {
      prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
      execl("/proc/self/exe", "test-four-nodes", "--gtest_filter=Aware.WhatCannotBeMovedIsCounted",
            nullptr);
      _exit(127);
    }
    int status = -1;
    waitpid(alone, &status, 0);
    EXPECT_EQ(status, 0);
    return;
  }
  const std::vector<Block> blocks = blocks_touched_on(0, 50);
  int forked[2];
  ASSERT_EQ(pipe(forked), 0);
  const pid_t child = fork();  // shares all pages: the kernel leaves them where they are
  ASSERT_GE(child, 0);
  if (child == 0) {
    // The allocator's fork handlers are through: what they wrote is no longer shared.
    if (write(forked[1], "", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(forked[0], &byte, 1), 1);
  const std::vector<int> before = pages_of_heap(allocation::default_heap);
  const std::vector<bool> exclusive = exclusive_pages_of_heap(allocation::default_heap);
  const muster_memory_counters then = counters();
  servers({1});
  const muster_memory_counters now = counters();
  std::uint64_t shared = 0;
  std::uint64_t moved = 0;
  std::vector<int> expected = before;
  ASSERT_EQ(exclusive.size(), before.size());
  for (std::size_t page = 0; page < before.size(); ++page) {
    if (before[page] < 0 || before[page] == 1) continue;
    ++(exclusive[page] ? moved : shared);
    if (exclusive[page]) expected[page] = 1;
  }
  ASSERT_GT(shared, 100U);
  EXPECT_EQ(now.pages_refused - then.pages_refused, shared);
  EXPECT_EQ(now.pages_moved - then.pages_moved, moved);
  EXPECT_EQ(now.first_refusal, EACCES);
  EXPECT_EQ(pages_of_heap(allocation::default_heap), expected);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  // Their blocks are not handed out again as if they had moved.
  expect_fresh_blocks_on_1({blocks}, 700);
}

TEST_F(Aware, BlocksFollowLibmustersServers) {
  ASSERT_EQ(muster_memory_follow_servers(), MUSTER_OK);
  const std::vector<Block> older = blocks_touched_on(0, 10);
  muster_server* first = nullptr;
  muster_server* second = nullptr;
  ASSERT_EQ(muster_server_start(&first, "7"), MUSTER_OK) << muster_last_error();
  EXPECT_EQ(counters().numa_node, 3);
  EXPECT_THAT(where(older), ElementsAre(3));
  const std::vector<Block> bound = blocks_touched_on(1, 10);
  EXPECT_THAT(where(bound), ElementsAre(3));
  ASSERT_EQ(muster_server_start(&second, "4"), MUSTER_OK) << muster_last_error();
  EXPECT_EQ(counters().numa_node, -1);
  EXPECT_EQ(counters().bytes_bound, 0U);
  ASSERT_EQ(muster_server_destroy(first), MUSTER_OK);
  EXPECT_EQ(counters().numa_node, 2);
  const std::vector<Block> other = blocks_touched_on(1, 10);
  EXPECT_THAT(where(other), ElementsAre(2));
  EXPECT_THAT(where(bound), ElementsAre(3));
  ASSERT_EQ(muster_server_destroy(second), MUSTER_OK);
  EXPECT_EQ(counters().numa_node, -1);
  ASSERT_EQ(muster_server_set_observer(nullptr, nullptr), MUSTER_OK);
  for (const auto* blocks : {&older, &bound, &other}) free_all(*blocks);
}

// A fork's child has none of its parent's servers: blocks follow those that it starts itself.
TEST_F(Aware, BlocksFollowAChildsServers) {
  ASSERT_EQ(muster_memory_follow_servers(), MUSTER_OK);
  muster_server* parents = nullptr;
  ASSERT_EQ(muster_server_start(&parents, "7"), MUSTER_OK) << muster_last_error();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    muster_server* own = nullptr;
    if (muster_server_start(&own, "6") != MUSTER_OK || counters().numa_node != 2) _exit(1);
    const bool there = where(blocks_touched_on(1, 10)) == std::vector<int>{2};
    if (muster_server_destroy(own) != MUSTER_OK || counters().numa_node != -1) _exit(2);
    _exit(there ? 0 : 3);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(counters().numa_node, 3);
  ASSERT_EQ(muster_server_destroy(parents), MUSTER_OK);
  ASSERT_EQ(muster_server_set_observer(nullptr, nullptr), MUSTER_OK);
}

TEST_F(Aware, ServersWithoutMemoryLeaveAllocationAlone) {
  servers({9});  // no such NUMA node
  EXPECT_EQ(counters().numa_node, -1);
  char text[1000];
  ASSERT_EQ(muster_memory_explain(text, sizeof text, nullptr), MUSTER_OK);
  EXPECT_THAT(text, HasSubstr("a NUMA node that has no memory for this process"));
}

TEST_F(Aware, TheMapOfTheProcessStaysInOnePiece) {
  const auto maps = [] {
    std::ifstream file("/proc/self/maps");
    unsigned lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    return lines;
  };
  const unsigned before = maps();
  std::vector<void*> blocks(200);
  for (unsigned turn = 0; turn < 60; ++turn) {
    servers(turn % 3 == 2 ? std::vector<unsigned>{0, 1} : std::vector<unsigned>{turn % 4});
    for (unsigned i = turn; i < 200; i += 1 + turn % 5) {
      muster_free(blocks[i]);
      blocks[i] = muster_alloc(1U << (4 + (i + turn) % 17));
      *static_cast<char*>(blocks[i]) = 1;
    }
  }
  for (void* const block : blocks) muster_free(block);
  EXPECT_LT(maps(), before + 40);
}

}  // namespace
}  // namespace muster::test
