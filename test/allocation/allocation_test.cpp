// SPDX-License-Identifier: BSD-3-Clause
// Blocks while servers come and go: what they hold, whose heap they are of, who frees them. Where
// their pages are: test/numa/allocation_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/memory.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocation/heap.hpp"
#include "allocation/jemalloc.hpp"
#include "harness.hpp"
#include "muster/memory.hpp"

namespace {

// In place of libmuster's, which this program is without. Exported, so that dlsym() finds it.
void (*observer)(const unsigned*, unsigned, void*);
void* observer_context;
int observer_status = MUSTER_OK;

}  // namespace

extern "C" MUSTER_API int muster_server_set_observer(void (*changed)(const unsigned*, unsigned,
                                                                     void*),
                                                     void* context) {
  observer = changed;
  observer_context = context;
  return observer_status;
}

namespace muster::test {
namespace {

using ::testing::HasSubstr;

void servers(std::vector<unsigned> numa_nodes) {
  ASSERT_EQ(muster_memory_servers(numa_nodes.data(), static_cast<unsigned>(numa_nodes.size())),
            MUSTER_OK);
}

/// A block that knows what it should hold.
struct Block {
  unsigned char* data = nullptr;
  std::size_t bytes = 0;
  unsigned char first = 0;

  void fill(unsigned char from) {
    first = from;
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(from + i * 7);
  }
  bool intact(std::size_t upto) const {
    for (std::size_t i = 0; i < upto; ++i) {
      if (data[i] != static_cast<unsigned char>(first + i * 7)) return false;
    }
    return true;
  }
};

constexpr std::size_t sizes[] = {1,    8,     24,    100,    512,     2000,
                                 4096, 14336, 40000, 100000, 1 << 20, (3 << 20) + 5};

class Allocation : public ::testing::Test {
 protected:
  void SetUp() override { servers({}); }
  void TearDown() override { servers({}); }
};

TEST_F(Allocation, KeepsTheFamilysPromises) {
  for (const std::size_t bytes : sizes) {
    auto* const block = static_cast<unsigned char*>(muster_alloc(bytes));
    ASSERT_NE(block, nullptr);
    EXPECT_GE(muster_usable_size(block), bytes);
    std::memset(block, 0xA5, muster_usable_size(block));
    muster_free(block);
    auto* const zeroed = static_cast<unsigned char*>(muster_alloc_zeroed(bytes, 3));
    for (std::size_t i = 0; i < 3 * bytes; ++i) ASSERT_EQ(zeroed[i], 0) << i << " of " << bytes;
    muster_free(zeroed);
  }
  for (std::size_t alignment = 1; alignment <= std::size_t{4} << 20; alignment *= 2) {
    void* const block = muster_alloc_aligned(alignment, 100);
    ASSERT_NE(block, nullptr) << alignment;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
    muster_free(block);
  }
  errno = 0;
  EXPECT_EQ(muster_alloc_aligned(24, 100), nullptr);
  EXPECT_EQ(errno, EINVAL);
  void* const kept = muster_alloc(10);
  for (const std::size_t bytes : {SIZE_MAX - 100, SIZE_MAX / 2}) {
    const auto expect_none = [&](void* none) {
      EXPECT_EQ(none, nullptr);
      EXPECT_EQ(errno, ENOMEM) << bytes;
      errno = 0;
    };
    errno = 0;
    expect_none(muster_alloc(bytes));
    expect_none(muster_alloc_zeroed(1, bytes));
    expect_none(muster_alloc_zeroed(bytes, 3));
    expect_none(muster_alloc_aligned(64, bytes));
    expect_none(muster_alloc_aligned(SIZE_MAX / 2 + 1, 100));
    expect_none(muster_realloc(nullptr, bytes));
    expect_none(muster_realloc(kept, bytes));
  }
  muster_free(kept);
  void* const nothing = muster_alloc(0);
  void* const other = muster_alloc(0);
  EXPECT_NE(nothing, nullptr);
  EXPECT_NE(nothing, other);
  muster_free(nothing);
  EXPECT_EQ(muster_realloc(other, 0), nullptr);
  muster_free(nullptr);
  EXPECT_EQ(muster_usable_size(nullptr), 0U);
  EXPECT_EQ(muster_memory_servers(nullptr, 1), MUSTER_EINVAL);
  EXPECT_EQ(muster_memory_get_counters(nullptr, 0), MUSTER_EINVAL);
}

TEST_F(Allocation, FreeingLeavesErrnoAlone) {
  for (const bool strict : {false, true}) {
    std::vector<void*> blocks;
    for (const std::size_t bytes : sizes) blocks.push_back(muster_alloc(bytes * 16));
    // What is free is given back to the system at once.
    unsigned arena = 0;
    std::size_t bytes = sizeof arena;
    ASSERT_EQ(je_mallctl("thread.arena", &arena, &bytes, nullptr, 0), 0);
    ssize_t at_once = 0;
    const std::string decay = "arena." + std::to_string(arena) + ".dirty_decay_ms";
    ASSERT_EQ(je_mallctl(decay.c_str(), nullptr, nullptr, &at_once, sizeof at_once), 0);
    if (strict) {
      servers({1, 2});
      servers({2});
    }
    errno = 4711;
    for (void* const block : blocks) muster_free(block);
    EXPECT_EQ(errno, 4711);
  }
}

TEST_F(Allocation, BlocksAreOfTheServersHeap) {
  const auto home_of_new_blocks = [] {
    std::vector<int> homes;
    std::vector<void*> blocks;
    for (const std::size_t bytes : sizes) {
      for (unsigned i = 0; i < 50; ++i) {
        blocks.push_back(i % 3 == 0 ? muster_alloc_zeroed(1, bytes) : muster_alloc(bytes));
        homes.push_back(muster_memory_numa(blocks.back()));
      }
      blocks.push_back(muster_alloc_aligned(256, bytes));
      homes.push_back(muster_memory_numa(blocks.back()));
    }
    for (void* const block : blocks) muster_free(block);
    std::sort(homes.begin(), homes.end());
    homes.erase(std::unique(homes.begin(), homes.end()), homes.end());
    return homes;
  };
  using Homes = std::vector<int>;
  EXPECT_EQ(home_of_new_blocks(), Homes{-1});
  servers({3});
  EXPECT_EQ(home_of_new_blocks(), Homes{3});
  servers({3, 3});
  EXPECT_EQ(home_of_new_blocks(), Homes{3});
  servers({3, 3, 0});
  EXPECT_EQ(home_of_new_blocks(), Homes{-1});
  servers({0});
  EXPECT_EQ(home_of_new_blocks(), Homes{0});
  servers({});
  EXPECT_EQ(home_of_new_blocks(), Homes{-1});
  servers({1023});
  EXPECT_EQ(home_of_new_blocks(), Homes{1023});
  servers({1024});  // no such
  EXPECT_EQ(home_of_new_blocks(), Homes{-1});
}

// A cache that hands out again what it was given is where allocators of several heaps leak.
TEST_F(Allocation, FreedBlocksOfAnotherHeapAreNotHandedOutAgain) {
  servers({1, 2});
  std::vector<void*> old;
  for (unsigned i = 0; i < 2000; ++i) old.push_back(muster_alloc(sizes[i % 7]));
  servers({2});
  for (unsigned i = 0; i < 2000; ++i) {
    if (i % 3 == 0) {
      old[i] = muster_realloc(old[i], 20000);  // frees it on the way
      ASSERT_EQ(muster_memory_numa(old[i]), 2);
    } else {
      muster_free(old[i]);
    }
    void* const block = muster_alloc(sizes[i % 7]);
    ASSERT_EQ(muster_memory_numa(block), 2) << i;
    if (i % 3 == 0) muster_free(old[i]);
    muster_free(block);
  }
}

TEST_F(Allocation, BlocksKeepWhatTheyHold) {
  SCOPED_TRACE(replay_command());
  Random random(case_seed());
  std::vector<Block> blocks(400);
  const std::vector<std::vector<unsigned>> in_turn = {{}, {0}, {0, 1}, {1, 1}, {0}};
  std::map<int, unsigned> homes;
  for (unsigned step = 0; step < rounds(20000); ++step) {
    if (step % 250 == 0) servers(in_turn[step / 250 % in_turn.size()]);
    Block& block = blocks[random.below(400)];
    const std::size_t bytes = 1 + random.below(1U << (4 + random.below(14)));
    if (block.data == nullptr) {
      block.data = static_cast<unsigned char*>(muster_alloc(bytes));
    } else if (random.one_in(3)) {
      ASSERT_TRUE(block.intact(block.bytes));
      muster_free(block.data);
      block.data = nullptr;
      continue;
    } else {
      block.data = static_cast<unsigned char*>(muster_realloc(block.data, bytes));
      ASSERT_NE(block.data, nullptr);
      ASSERT_TRUE(block.intact(std::min(block.bytes, bytes)));
    }
    ASSERT_NE(block.data, nullptr);
    block.bytes = bytes;
    block.fill(static_cast<unsigned char>(step));
    ++homes[muster_memory_numa(block.data)];
  }
  for (const Block& block : blocks) {
    EXPECT_TRUE(block.data == nullptr || block.intact(block.bytes));
    muster_free(block.data);
  }
  EXPECT_EQ(homes.size(), 3U);  // the trial has been at all of them
}

// Threads hand blocks to each other, while servers come and go under their feet.
TEST_F(Allocation, ThreadsFreeEachOthersBlocks) {
  SCOPED_TRACE(replay_command());
  constexpr unsigned count = 4;
  const std::uint64_t seed = case_seed();
  struct Mailbox {
    std::mutex mutex;
    std::vector<Block> blocks;
  };
  std::vector<Mailbox> mailboxes(count);
  std::atomic<unsigned> damaged{0};
  std::atomic<unsigned> running{count};
  const auto work = [&](unsigned me) {
    Random random(seed + me);
    for (unsigned step = 0; step < rounds(20000); ++step) {
      Block block;
      block.bytes = 1 + random.below(1U << (4 + random.below(10)));
      block.data = static_cast<unsigned char*>(muster_alloc(block.bytes));
      block.fill(static_cast<unsigned char>(step));
      Mailbox& to = mailboxes[random.below(count)];
      Block got;
      {
        const std::lock_guard lock(to.mutex);
        if (to.blocks.size() < 50) {
          to.blocks.push_back(block);
        } else {
          got = std::exchange(to.blocks[random.below(50)], block);
        }
      }
      if (got.data == nullptr) continue;
      if (!got.intact(got.bytes)) ++damaged;
      muster_free(got.data);
    }
    --running;
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) threads.emplace_back(work, i);
  Random random(seed + count);
  unsigned changes = 0;
  while (running != 0) {
    std::vector<unsigned> now(random.below(3));
    for (unsigned& numa : now) numa = random.below(3);
    servers(now);
    ++changes;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (std::thread& thread : threads) thread.join();
  for (Mailbox& mailbox : mailboxes) {
    for (const Block& block : mailbox.blocks) {
      if (!block.intact(block.bytes)) ++damaged;
      muster_free(block.data);
    }
  }
  EXPECT_EQ(damaged, 0U);
  EXPECT_GT(changes, 3U);
}

// Destructors of a thread's variables allocate and free when jemalloc's own is through.
TEST_F(Allocation, ThreadsMayAllocateUntilTheirEnd) {
  struct Late {
    void* block = muster_alloc(100);
    ~Late() {
      muster_free(block);
      void* const more = muster_alloc(5000);
      std::memset(more, 1, 5000);
      muster_free(more);
    }
  };
  for (unsigned i = 0; i < 50; ++i) {
    if (i % 10 == 0) servers({i % 3});
    std::thread([] {
      static thread_local Late late;
      std::memset(late.block, 2, 100);
    }).join();
  }
}

unsigned count_maps() {
  std::ifstream maps("/proc/self/maps");
  unsigned count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

// Every other block is freed and given back to the system.
TEST_F(Allocation, LeavesTheMapOfTheProcessInOnePiece) {
  muster_free(muster_alloc(1));
  const unsigned before = count_maps();
  for (unsigned turn = 0; turn < 4; ++turn) {
    servers({turn % 2});
    std::vector<void*> blocks;
    for (unsigned i = 0; i < 800; ++i) {
      blocks.push_back(muster_alloc(20000 + i * 50));
      *static_cast<char*>(blocks.back()) = 1;
    }
    for (unsigned i = 0; i < 800; i += 2) muster_free(std::exchange(blocks[i], nullptr));
    // "arena.<all of them>": what time would do.
    ASSERT_EQ(je_mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0), 0);
    EXPECT_LT(count_maps(), before + 60);
    for (void* const block : blocks) muster_free(block);
  }
}

// A child has one thread, and the allocator as if the others had never been.
TEST_F(Allocation, ChildrenAllocateWhateverOtherThreadsWereDoing) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      Random random(i);
      while (!stop) {
        if (i == 0) {
          const unsigned numa[] = {random.below(2), random.below(2)};
          muster_memory_servers(numa, 1 + random.below(2));
        } else {
          muster_free(muster_alloc(1 + random.below(100000)));
        }
      }
    });
  }
  for (unsigned turn = 0; turn < rounds(24); ++turn) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(200);
      const unsigned numa = turn % 5;
      if (muster_memory_servers(&numa, 1) != MUSTER_OK) _exit(1);
      for (const std::size_t bytes : sizes) {
        auto* const block = static_cast<unsigned char*>(muster_alloc(bytes));
        if (block == nullptr || muster_memory_numa(block) != static_cast<int>(numa)) _exit(2);
        std::memset(block, 1, bytes);
        muster_free(muster_realloc(block, 2 * bytes));
      }
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "turn " << turn;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Allocation, ServesContainers) {
  servers({5});
  std::vector<double, allocator<double>> numbers(1000, 1.5);
  EXPECT_EQ(muster_memory_numa(numbers.data()), 5);
  struct alignas(256) Wide {
    char data[256];
  };
  const std::vector<Wide, allocator<Wide>> wide(3);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wide.data()) % 256, 0U);
  EXPECT_THROW(static_cast<void>(allocator<double>().allocate(SIZE_MAX / 4)),
               std::bad_array_new_length);
  EXPECT_THROW(static_cast<void>(allocator<char>().allocate(SIZE_MAX - 1)), std::bad_alloc);
  std::pmr::map<int, int> table(servers_memory());
  for (int i = 0; i < 1000; ++i) table[i] = -i;
  EXPECT_EQ(muster_memory_numa(&table[17]), 5);
  std::vector<void*> narrow;
  for (unsigned i = 0; i < 16; ++i) {
    narrow.push_back(servers_memory()->allocate(1, 16));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(narrow.back()) % 16, 0U);
  }
  for (void* const block : narrow) servers_memory()->deallocate(block, 1, 16);
  EXPECT_TRUE(servers_memory()->is_equal(*servers_memory()));
  EXPECT_FALSE(servers_memory()->is_equal(*std::pmr::new_delete_resource()));
}

TEST_F(Allocation, SaysWhatItDoes) {
  EXPECT_THAT(explain_memory(), HasSubstr("no server: blocks come from default allocation"));
  const muster_memory_counters before = memory_counters();
  servers({3, 3});
  EXPECT_THAT(explain_memory(), HasSubstr("servers on NUMA node 3: blocks come from its arenas"));
  EXPECT_EQ(memory_counters().numa_node, 3);
  servers({3, 2});
  EXPECT_THAT(explain_memory(), HasSubstr("servers on several NUMA nodes: default allocation"));
  EXPECT_EQ(memory_counters().numa_node, -1);
  servers({5000});
  EXPECT_THAT(explain_memory(), HasSubstr("servers on a NUMA node that has no memory"));
  const muster_memory_counters after = memory_counters();
  EXPECT_EQ(after.bindings, before.bindings + 1);
  EXPECT_EQ(after.lifts, before.lifts + 1);
  EXPECT_GE(after.bytes, std::uint64_t{2} << 20);
  if (!allocation::binds) {
    EXPECT_THAT(explain_memory(), HasSubstr("no page is bound or moved: "));
    EXPECT_EQ(after.bytes_bound, 0U);
  }
  char text[8] = "1234567";
  std::size_t needed = 0;
  EXPECT_EQ(muster_memory_explain(text, 4, &needed), MUSTER_OK);
  EXPECT_STREQ(text, "ser");
  EXPECT_EQ(needed, explain_memory().size() + 1);
}

TEST_F(Allocation, ArenasAreAutomaticUntilTheseAreUsedUp) {
  unsigned automatic = 0;
  std::size_t bytes = sizeof automatic;
  ASSERT_EQ(je_mallctl("opt.narenas", &automatic, &bytes, nullptr, 0), 0);
  std::set<unsigned> numbers;
  unsigned last = 0;
  for (unsigned slot = 0; slot < std::min(automatic + 1, allocation::arenas_max); ++slot) {
    const auto number = allocation::arena(allocation::default_heap, slot);
    ASSERT_TRUE(number.has_value());
    EXPECT_TRUE(numbers.insert(*number).second) << "arena " << *number << " twice";
    last = *number;
  }
  EXPECT_GT(*numbers.begin(), 0U);  // jemalloc's own
  EXPECT_LT(*numbers.begin(), automatic);
  if (numbers.size() >= automatic) {
    EXPECT_GE(last, automatic);
  }
}

TEST_F(Allocation, FollowsServers) {
  ASSERT_TRUE(follow_servers());
  ASSERT_NE(observer, nullptr);
  const unsigned numa_nodes[] = {1, 1};
  observer(numa_nodes, 2, observer_context);
  EXPECT_EQ(memory_counters().numa_node, 1);
  observer(nullptr, 0, observer_context);
  EXPECT_EQ(memory_counters().numa_node, -1);
  observer_status = MUSTER_ENOMEM;
  EXPECT_EQ(muster_memory_follow_servers(), MUSTER_ENOMEM);
  EXPECT_FALSE(follow_servers());
  observer_status = MUSTER_OK;
}

}  // namespace
}  // namespace muster::test
