// SPDX-License-Identifier: BSD-3-Clause
// Barriers over four NUMA nodes: every rank's block lies where the rank sits, page by page, and
// threads and processes bound across all of them meet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <muster/muster.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "capi/block.hpp"
#include "pages_of.hpp"

namespace muster::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr unsigned ranks = 8;
constexpr unsigned episodes = 100;
constexpr std::int64_t patience_ns = std::int64_t{60} * 1'000'000'000;
constexpr std::size_t segment_bytes = std::size_t{4} << 20;

constexpr unsigned numa_of_cpu(unsigned cpu) { return cpu / 4 * 2 + cpu % 2; }

/// Rank i on CPU 7 - i: the creator's NUMA node is not where rank 0 sits by chance.
constexpr unsigned cpu_of_rank(unsigned rank) { return 7 - rank; }

const std::vector<const char*>& bindings() {
  static const std::vector<const char*> all = {"7", "6", "5", "4", "3", "2", "1", "0"};
  return all;
}

muster_options options_for(const std::string& algorithm) {
  muster_options options;
  muster_options_init(&options);
  options.participants = ranks;
  options.algorithm = algorithm.c_str();
  options.bindings = bindings().data();
  return options;
}

std::vector<std::string> algorithms() {
  std::vector<std::string> names = {"auto"};
  for (const char* const* name = muster_barrier_names(); *name != nullptr; ++name) {
    names.emplace_back(*name);
  }
  return names;
}

void expect_blocks_at_home(std::byte* memory, std::size_t bytes) {
  Plan plan;
  const Block block = Block::attach(memory, bytes, plan);
  ASSERT_TRUE(block.layout().paged);
  for (unsigned rank = 0; rank < ranks; ++rank) {
    EXPECT_THAT(numa_nodes_of_pages(block.rank_memory(rank), block.layout().rank_stride),
                ElementsAre(static_cast<int>(numa_of_cpu(cpu_of_rank(rank)))))
        << "rank " << rank << " on CPU " << cpu_of_rank(rank);
  }
}

class FourNodes : public ::testing::TestWithParam<std::string> {};

TEST_P(FourNodes, BlocksInASegmentAreWhereTheRanksAre) {
  muster_segment* segment = nullptr;
  ASSERT_EQ(muster_segment_create(&segment, segment_bytes), MUSTER_OK) << muster_last_error();
  muster_options options = options_for(GetParam());
  options.flags = MUSTER_SHARED;
  options.segment = segment;
  for (int turn = 0; turn < 2; ++turn) {  // the second barrier has a place of its own
    muster_barrier* barrier = nullptr;
    ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK) << muster_last_error();
    std::size_t bytes = 0;
    auto* const data = static_cast<std::byte*>(muster_segment_data(segment, &bytes));
    const std::uint64_t offset = muster_barrier_handle(barrier);
    expect_blocks_at_home(data + offset, bytes - offset);
    if (turn != 0) muster_barrier_destroy(barrier);
  }
  muster_segment_destroy(segment);
}

/// What all ranks share beside the barrier: who has come how often.
struct Arrivals {
  std::atomic<unsigned> of[ranks];
};

/// False if somebody is behind, or the wait fails.
bool meet(muster_barrier* barrier, unsigned rank, Arrivals& arrivals) {
  if (!bind_to_cpu(cpu_of_rank(rank))) return false;
  if (numa_of_this_thread() != numa_of_cpu(cpu_of_rank(rank))) return false;
  for (unsigned episode = 1; episode <= episodes; ++episode) {
    arrivals.of[rank].store(episode, std::memory_order_relaxed);
    if (muster_barrier_timedwait(barrier, rank, patience_ns) != MUSTER_OK) return false;
    for (const std::atomic<unsigned>& other : arrivals.of) {
      const unsigned seen = other.load(std::memory_order_relaxed);
      if (seen != episode && seen != episode + 1) return false;
    }
  }
  return true;
}

Arrivals* make_arrivals() {
  void* const memory =
      mmap(nullptr, sizeof(Arrivals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) Arrivals{};
}

TEST_P(FourNodes, ThreadsMeetAndHaveTheirBlocksAtHome) {
  muster_options options = options_for(GetParam());
  std::size_t bytes = 0;
  std::size_t alignment = 0;
  ASSERT_EQ(muster_barrier_memory(&options, &bytes, &alignment), MUSTER_OK) << muster_last_error();
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  options.memory = memory;
  options.memory_bytes = bytes;
  muster_barrier* barrier = nullptr;
  ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK) << muster_last_error();
  expect_blocks_at_home(static_cast<std::byte*>(memory), bytes);
  Arrivals arrivals{};
  std::atomic<unsigned> met{0};
  std::vector<std::thread> threads;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { met += meet(barrier, rank, arrivals) ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(met, ranks);
  muster_barrier_destroy(barrier);
  munmap(memory, bytes);
}

TEST_P(FourNodes, ProcessesMeet) {
  muster_options options = options_for(GetParam());
  options.flags = MUSTER_SHARED;
  muster_barrier* barrier = nullptr;
  ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK) << muster_last_error();
  Arrivals* const arrivals = make_arrivals();
  ASSERT_NE(arrivals, nullptr);
  std::vector<pid_t> children;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      muster_barrier* mine = nullptr;
      if (muster_barrier_attach(&mine, muster_barrier_fd(barrier)) != MUSTER_OK) _exit(2);
      _exit(meet(mine, rank, *arrivals) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  muster_barrier_destroy(barrier);
  munmap(arrivals, sizeof *arrivals);
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Barriers, FourNodes, ::testing::ValuesIn(algorithms()), test_name);

/// On CPU turn + 3 * rank: not told the barrier.
constexpr unsigned wandering(unsigned rank, unsigned turn) { return (turn + 3 * rank) % 8; }

std::string explained(const muster_barrier* barrier) {
  std::string text(std::size_t{1} << 14, '\0');
  EXPECT_EQ(muster_barrier_explain(barrier, "text", text.data(), text.size(), nullptr), MUSTER_OK);
  return text.c_str();
}

TEST(Unbound, AreFollowedToWhereTheyGo) {
  muster_options options;
  muster_options_init(&options);
  options.participants = ranks;
  muster_barrier* barrier = nullptr;
  ASSERT_EQ(muster_barrier_create(&barrier, &options), MUSTER_OK) << muster_last_error();
  EXPECT_THAT(explained(barrier), HasSubstr("algorithm     following (asked for: auto)"));
  for (const unsigned turn : {0U, 1U}) {
    std::atomic<unsigned> met{0};
    std::vector<std::thread> threads;
    for (unsigned rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        ASSERT_TRUE(bind_to_cpu(wandering(rank, turn)));
        for (unsigned episode = 0; episode < 10 * episodes; ++episode) {
          ASSERT_EQ(muster_barrier_timedwait(barrier, rank, patience_ns), MUSTER_OK);
        }
        ++met;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(met, ranks);
    std::string seats = "seats         on CPU, by rank:";
    for (unsigned rank = 0; rank < ranks; ++rank) {
      seats += " " + std::to_string(wandering(rank, turn));
    }
    EXPECT_THAT(explained(barrier), HasSubstr(seats + "\n"));
    EXPECT_THAT(explained(barrier), HasSubstr("\nruns          scheduled-"));
  }
  muster_barrier_destroy(barrier);
}

}  // namespace
}  // namespace muster::test
