// SPDX-License-Identifier: BSD-3-Clause
// What allocation on the servers' NUMA node costs: muster_alloc() beside plain jemalloc, which is
// this program's malloc(). Wanted: within 1.1x. And migration beside bare move_pages().
//
//   muster-bench-allocation [--rounds N] [--threads 1,2,4] [--migrate MIB]
//
// Modelled on Larson and Krishnan's server (ISMM 1998): threads replace blocks of random sizes in
// random places, and leave them to threads that come after them, which free them. The ways take
// turns in an order that changes; a ratio is the median over rounds, with its 95 % interval.
#include <fmt/format.h>
#include <muster/memory.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/stats.hpp"

namespace {

using namespace muster::bench;
using Clock = std::chrono::steady_clock;

struct Way {
  const char* name;
  void* (*allocate)(std::size_t);
  void (*release)(void*);
  std::function<void()> prepare;
};

struct Load {
  const char* name;
  unsigned least;
  unsigned most;
  unsigned slots;       ///< blocks that a thread holds
  unsigned operations;  ///< of a thread: one block freed, one allocated
};

void servers(std::vector<unsigned> numa_nodes) {
  muster_memory_servers(numa_nodes.data(), static_cast<unsigned>(numa_nodes.size()));
}

/// xorshift: cheaper than what is measured.
class Random {
 public:
  explicit Random(std::uint32_t seed) : state_(seed * 2654435761U + 1) {}
  std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }

 private:
  std::uint32_t state_;
};

void replace(const Way& way, const Load& load, std::vector<void*>& blocks, std::uint32_t seed) {
  Random random(seed);
  for (unsigned i = 0; i < load.operations; ++i) {
    void*& block = blocks[random.next() % blocks.size()];
    way.release(block);
    block = way.allocate(load.least + random.next() % (load.most - load.least));
    *static_cast<char*>(block) = 1;
  }
}

/// Nanoseconds for one block freed and one allocated, of a thread.
double run(const Way& way, const Load& load, unsigned threads) {
  constexpr unsigned generations = 4;
  way.prepare();
  std::vector<std::vector<void*>> blocks(threads, std::vector<void*>(load.slots));
  double ns = 0;
  for (unsigned generation = 0; generation <= generations; ++generation) {
    const auto begin = Clock::now();
    std::vector<std::thread> team;
    for (unsigned i = 0; i < threads; ++i) {
      // Each goes on with what its neighbour left.
      std::vector<void*>& mine = blocks[(i + generation) % threads];
      team.emplace_back([&, generation] { replace(way, load, mine, generation * 97 + i + 1); });
    }
    for (std::thread& thread : team) thread.join();
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    if (generation != 0) ns += took.count();  // the first one fills the slots
  }
  for (const auto& left : blocks) {
    for (void* const block : left) way.release(block);
  }
  return ns / generations / load.operations;
}

void compare(const std::vector<Way>& ways, const Load& load, unsigned threads, unsigned rounds) {
  std::vector<std::vector<double>> ns(ways.size());
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < ways.size(); ++turn) {
      const std::size_t way = (turn + round) % ways.size();
      ns[way].push_back(run(ways[way], load, threads));
    }
  }
  for (std::size_t way = 0; way < ways.size(); ++way) {
    fmt::print("{:<14} {:>7}  {:<22} {:>9.1f}", load.name, threads, ways[way].name,
               median(ns[way]));
    if (way != 0) {
      const PairedRatio ratio = paired_ratio(ns[way], ns[0], 1);
      fmt::print("  {:.3f} [{:.3f}, {:.3f}]", ratio.ratio, ratio.ci95.lo, ratio.ci95.hi);
    }
    fmt::print("\n");
  }
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Both move so many pages to and fro between NUMA nodes 0 and 1, and no huge ones.
int migrate(std::size_t mebibytes, unsigned rounds) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = mebibytes << 20;
  const std::size_t count = bytes / page;
  servers({});
  auto* const block = static_cast<char*>(muster_alloc(bytes));
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == nullptr || memory == MAP_FAILED) return 1;
  auto* const bare = static_cast<char*>(memory);
  madvise(bare, bytes, MADV_NOHUGEPAGE);
  const std::size_t into = reinterpret_cast<std::uintptr_t>(block) % page;
  madvise(block - into, bytes, MADV_NOHUGEPAGE);
  std::vector<void*> pages(count);
  for (std::size_t i = 0; i < count; ++i) {
    pages[i] = bare + i * page;
    bare[i * page] = 1;
    block[i * page] = 1;
  }
  std::vector<double> ours;
  std::vector<double> theirs;
  std::uint64_t moved = 0;
  for (unsigned round = 0; round <= rounds; ++round) {
    const unsigned to = round % 2;
    servers({});
    muster_memory_counters before;
    muster_memory_get_counters(&before, sizeof before);
    const double mine = seconds_of([&] { servers({to}); });
    muster_memory_counters after;
    muster_memory_get_counters(&after, sizeof after);
    const std::vector<int> numa(count, static_cast<int>(to));
    std::vector<int> status(count);
    const double plain = seconds_of(
        [&] { syscall(SYS_move_pages, 0, count, pages.data(), numa.data(), status.data(), 2); });
    if (round == 0) continue;  // wherever they were
    moved = after.pages_moved - before.pages_moved;
    if (moved < count || std::count(status.begin(), status.end(), static_cast<int>(to)) !=
                             static_cast<std::ptrdiff_t>(count)) {
      fmt::print("migration: n/a, there are no two NUMA nodes to move between\n");
      return 77;
    }
    ours.push_back(mine / static_cast<double>(moved));
    theirs.push_back(plain / static_cast<double>(count));
  }
  const PairedRatio ratio = paired_ratio(ours, theirs, 1);
  fmt::print("migration of {} pages: {:.0f} ns a page, {:.0f} bare: {:.3f} [{:.3f}, {:.3f}]\n",
             moved, median(ours) * 1e9, median(theirs) * 1e9, ratio.ratio, ratio.ci95.lo,
             ratio.ci95.hi);
  munmap(memory, bytes);
  muster_free(block);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"muster_alloc() beside plain jemalloc, or migration beside bare move_pages()"};
  unsigned rounds = 21;
  std::vector<unsigned> team = {1, 2, 4};
  std::size_t mebibytes = 0;
  app.add_option("--rounds", rounds, "All ways once a round")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--threads", team, "Numbers of threads")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option(
      "--migrate", mebibytes,
      "Migration only, of so many MiB between NUMA nodes 0 and 1 (77: there are not two)");
  CLI11_PARSE(app, argc, argv);
  if (mebibytes != 0) return migrate(mebibytes, rounds);

  const std::vector<Way> ways = {
      {"jemalloc", std::malloc, std::free, [] {}},
      {"muster, no server", muster_alloc, muster_free, [] { servers({}); }},
      {"muster, first server", muster_alloc, muster_free,
       [] {
         servers({});
         servers({0});
       }},
      {"muster, after a lift", muster_alloc, muster_free,
       [] {
         servers({0, 1});
         servers({0});
       }},
  };
  const Load loads[] = {
      {"8 to 512 B", 8, 512, 1000, 100000},
      {"1 to 16 KiB", 1024, 16384, 500, 50000},
      {"16 to 256 KiB", 16384, 262144, 50, 5000},
  };
  fmt::print("{:<14} {:>7}  {:<22} {:>9}  ratio to jemalloc [95 %]; wanted: 1.1 or less\n",
             "blocks", "threads", "way", "ns");
  for (const Load& load : loads) {
    for (const unsigned threads : team) compare(ways, load, threads, rounds);
  }
  return 0;
}
