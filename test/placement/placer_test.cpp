// SPDX-License-Identifier: BSD-3-Clause
// RCLLockInitNUMA, RCLHierarchicalAffinity and RCLAwareMalloc's decisions: on the papers' machines,
// and against the papers' listings, read as doc/placement.md says, on random machines.
#include "placement/placer.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "machine/error.hpp"
#include "test/topology/describe.hpp"

namespace muster::test {
namespace {

using ::testing::ElementsAre;
using Binding = MemoryDecision::Binding;

CoreTree described(const std::string& description) {
  return CoreTree(Topology::from_synthetic(description));
}

std::vector<unsigned> servers_on(Placer& placer, ServerPolicy policy, unsigned count) {
  std::vector<unsigned> cores;
  while (cores.size() < count) cores.push_back(placer.add_server(policy).core);
  return cores;
}

TEST(Oak, PackStaysOnTheNodeThatTheUserChose) {
  Placer placer{CoreTree(machine("oak.txt"))};
  placer.add_server_at(5);
  EXPECT_THAT(servers_on(placer, ServerPolicy::pack, 4), ElementsAre(4, 6, 7, 0));
}

// For a server of its own accord: what clients have to themselves is not spare.
TEST(Oak, ASpareCoreIsNeitherAClientsNorAServers) {
  Placer placer{CoreTree(machine("oak.txt"))};
  std::vector<bool> taken(8);
  const auto spare = [&](ServerPolicy policy) {
    return choose_spare_core(placer.tree(), placer.now(), policy, taken);
  };
  EXPECT_EQ(spare(ServerPolicy::pack), 0U);
  taken[0] = true;
  EXPECT_EQ(spare(ServerPolicy::pack), 1U);
  placer.add_server_at(4);
  EXPECT_EQ(spare(ServerPolicy::pack), 5U);
  EXPECT_EQ(spare(ServerPolicy::spread), 1U);
  for (const unsigned core : {5U, 6U, 7U}) taken[core] = true;
  EXPECT_EQ(spare(ServerPolicy::pack), 1U) << "its NUMA node has none left";
  for (const unsigned core : {1U, 2U, 3U}) taken[core] = true;
  EXPECT_EQ(spare(ServerPolicy::pack), std::nullopt);
  EXPECT_EQ(spare(ServerPolicy::spread), std::nullopt);
  taken[2] = false;
  EXPECT_EQ(spare(ServerPolicy::pack), 2U) << "the last one, too: nothing else is to go there";
}

TEST(Placer, WithoutServersThreadsAreNotPlaced) {
  Placer placer{CoreTree(machine("oak.txt"))};
  EXPECT_FALSE(placer.add_thread().has_value());
  EXPECT_TRUE(placer.add_threads(3).empty());
}

TEST(Placer, PlacesAreGivenBack) {
  Placer placer{CoreTree(machine("oak.txt"))};
  placer.add_server_at(0);
  placer.add_threads(5);  // 1 2 3 4 5
  placer.remove_thread(2);
  EXPECT_EQ(placer.add_thread(), 2U);
  EXPECT_EQ(placer.add_thread(), 6U);
  EXPECT_THROW(placer.remove_thread(7), Error);
}

TEST(Placer, SeveralServers) {
  Placer placer{CoreTree(machine("oak.txt"))};
  placer.add_server_at(1);
  placer.add_server_at(6);
  EXPECT_EQ(placer.add_thread(), 0U);   // the paper's rule: the first server
  EXPECT_EQ(placer.add_thread(6), 4U);  // known to use the other one
  EXPECT_THROW(placer.add_thread(3), Error);
}

TEST(Placer, ServerCoresAreCandidatesOnlyIfAllAre) {
  Placer placer(described("package:2 numa:1 core:2 pu:1"));
  for (unsigned core = 0; core < 3; ++core) placer.add_server_at(core);
  EXPECT_THAT(placer.add_threads(3), ElementsAre(3, 3, 3));
  placer.add_server_at(3);
  EXPECT_THAT(placer.add_threads(4), ElementsAre(0, 1, 2, 0));
}

TEST(Placer, RefusesWhatIsNotThere) {
  Placer placer{CoreTree(machine("oak.txt"))};
  EXPECT_THROW(placer.add_server_at(8), Error);
  EXPECT_THROW(placer.remove_server(0), Error);
  EXPECT_THROW(parse_policy("packed"), Error);
  EXPECT_EQ(parse_policy("spread"), ServerPolicy::spread);
}

TEST(Memory, FollowsTheServersWhileTheyShareANode) {
  Placer placer{CoreTree(machine("oak.txt"))};
  EXPECT_TRUE(decide_block(placer.tree(), placer.now()).remember);
  EXPECT_FALSE(decide_block(placer.tree(), placer.now()).numa.has_value());

  MemoryDecision memory = placer.add_server_at(5).memory;  // the first lock
  EXPECT_EQ(memory.binding, Binding::bind);
  EXPECT_EQ(memory.numa, 1U);
  EXPECT_TRUE(memory.migrate);
  EXPECT_EQ(decide_block(placer.tree(), placer.now()).numa, 1U);
  EXPECT_FALSE(decide_block(placer.tree(), placer.now()).remember);

  memory = placer.add_server(ServerPolicy::pack).memory;  // beside it
  EXPECT_EQ(memory.binding, Binding::keep);
  EXPECT_FALSE(memory.migrate);

  memory = placer.add_server(ServerPolicy::spread).memory;  // on the other node
  EXPECT_EQ(memory.binding, Binding::lift);
  EXPECT_FALSE(decide_block(placer.tree(), placer.now()).numa.has_value());
  EXPECT_FALSE(decide_block(placer.tree(), placer.now()).remember);

  memory = placer.remove_server(0);  // all on one again
  EXPECT_EQ(memory.binding, Binding::bind);
  EXPECT_FALSE(memory.migrate);
}

TEST(Memory, IsNotBoundWhereThereIsNone) {
  Placer placer{CoreTree(machine("memoryless-dies.xml"))};
  const std::vector<unsigned>& without = placer.tree().numa_nodes().back().cores;
  const MemoryDecision memory = placer.add_server_at(without.front()).memory;
  EXPECT_EQ(memory.binding, Binding::keep);
  EXPECT_FALSE(memory.migrate);
}

// [PS18, Algorithm 2], line by line, with the readings of doc/placement.md: counts are kept, the
// climb scans the root too, server cores are no candidates.
unsigned listing_2(const CoreTree& tree, const Occupancy& now) {
  bool all_serve = true;
  for (const unsigned servers : now.servers) all_serve = all_serve && servers != 0;
  for (unsigned i = 0; i < tree.cores(); ++i) {
    if (now.servers[i] == 0) continue;
    for (unsigned threads_per_core = 0;; ++threads_per_core) {
      unsigned covered = 1;
      unsigned k = tree.element_of(i);
      while (true) {
        while (tree.element(k).size() == covered && k != 0) k = tree.element(k).parent;
        const Element& element = tree.element(k);
        covered = element.size();
        for (unsigned at = element.first; at < element.end; ++at) {
          const unsigned j = tree.order()[at];
          if (now.servers[j] != 0 && !all_serve) continue;
          if (now.threads[j] <= threads_per_core) return j;
        }
        if (k == 0) break;
      }
    }
  }
  return ~0U;
}

// [PS18, Algorithm 1], lines 1-33.
unsigned listing_1(const CoreTree& tree, const Occupancy& now, ServerPolicy policy,
                   unsigned& cursor) {
  std::vector<unsigned> usage(tree.numa_nodes().size());
  unsigned free = 0;
  for (unsigned i = 0; i < tree.cores(); ++i) {
    now.servers[i] != 0 ? ++usage[tree.numa_of(i)] : ++free;
  }
  if (free <= 1) {
    for (unsigned tried = 0; tried < tree.cores(); ++tried) {
      const unsigned core = cursor;
      cursor = (cursor + 1) % tree.cores();
      if (now.servers[core] != 0) return core;
    }
    return 0;
  }
  unsigned best = ~0U;
  for (unsigned numa = 0; numa < usage.size(); ++numa) {
    if (usage[numa] == tree.numa_nodes()[numa].cores.size()) continue;
    if (best == ~0U ||
        (policy == ServerPolicy::pack ? usage[numa] > usage[best] : usage[numa] < usage[best])) {
      best = numa;
    }
  }
  for (const unsigned core : tree.numa_nodes()[best].cores) {
    if (now.servers[core] == 0) return core;
  }
  return ~0U;
}

TEST(Listings, AgreeOnRandomMachines) {
  std::mt19937 random(20180116);
  const auto upto = [&](unsigned n) { return random() % n + 1; };
  for (unsigned round = 0; round < 60; ++round) {
    const std::string description =
        fmt::format("package:{} numa:{} l3:{} l2:{} core:{} pu:{}", upto(3), upto(2), upto(3),
                    upto(2), upto(3), upto(2));
    SCOPED_TRACE(fmt::format("round {}: {}", round, description));
    Placer placer(described(description));
    std::vector<unsigned> threads;
    std::vector<unsigned> servers;
    unsigned cursor = 0;
    for (unsigned step = 0; step < 80; ++step) {
      const unsigned what = random() % 16;
      if (what == 0) {
        const ServerPolicy policy = random() % 2 != 0 ? ServerPolicy::pack : ServerPolicy::spread;
        const unsigned expected = listing_1(placer.tree(), placer.now(), policy, cursor);
        EXPECT_EQ(choose_server_core(placer.tree(), placer.now(), policy), expected);
        servers.push_back(placer.add_server(policy).core);
        ASSERT_EQ(servers.back(), expected);
      } else if (what == 1 && !servers.empty()) {
        const std::size_t which = random() % servers.size();
        placer.remove_server(servers[which]);
        servers.erase(servers.begin() + static_cast<std::ptrdiff_t>(which));
      } else if (what < 5 && !threads.empty()) {
        const std::size_t which = random() % threads.size();
        placer.remove_thread(threads[which]);
        threads.erase(threads.begin() + static_cast<std::ptrdiff_t>(which));
      } else if (!servers.empty()) {
        const unsigned expected = listing_2(placer.tree(), placer.now());
        EXPECT_EQ(choose_thread_core(placer.tree(), placer.now()), expected);
        threads.push_back(placer.add_thread().value());
        ASSERT_EQ(threads.back(), expected);
      }
    }
  }
}

TEST(Listings, ManyAtOnceAreAsOneByOne) {
  std::mt19937 random(7);
  for (unsigned round = 0; round < 20; ++round) {
    Placer one{CoreTree(machine("kunpeng920-2s.txt"))};
    one.add_server_at(random() % 128);
    one.add_server_at(random() % 128);
    for (const unsigned core : one.add_threads(300)) {
      if (random() % 2 != 0) one.remove_thread(core);
    }
    Placer all = one;
    std::vector<unsigned> cores;
    for (unsigned thread = 0; thread < 200; ++thread) cores.push_back(*one.add_thread());
    EXPECT_EQ(all.add_threads(200), cores);
  }
}

}  // namespace
}  // namespace muster::test
