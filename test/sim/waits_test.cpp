// SPDX-License-Identifier: BSD-3-Clause
// Who waits for whom: as the algorithms' descriptions have it.
#include "sim/waits.hpp"

#include <gtest/gtest.h>

#include <set>

#include "machine/error.hpp"
#include "sim/pair_matrix.hpp"

namespace muster::sim {
namespace {

using Pairs = std::multiset<std::pair<unsigned, unsigned>>;

/// Who hears from whom, once checked to be in order.
Pairs pairs(const char* algorithm, unsigned ranks, Mapping map_by = Mapping::core) {
  const Waits waits = waits_of(load_machine("epyc-7763-2s"), {algorithm, ranks, map_by});
  EXPECT_EQ(waits.inside_ns.size(), ranks);
  Pairs result;
  for (const Wait& wait : waits.waits) {
    EXPECT_LE(wait.told_ns, wait.heard_ns) << algorithm;
    EXPECT_GE(wait.told_ns, waits.inside_ns[wait.of].first) << algorithm;
    EXPECT_GE(wait.heard_ns, waits.inside_ns[wait.by].first) << algorithm;
    EXPECT_LE(wait.heard_ns, waits.inside_ns[wait.by].second) << algorithm;
    result.emplace(wait.by, wait.of);
  }
  return result;
}

TEST(Waits, AreThoseOfTheAlgorithm) {
  Pairs rounds;
  for (unsigned rank = 0; rank < 8; ++rank) {
    for (const unsigned distance : {1U, 2U, 4U}) rounds.emplace(rank, (rank + 8 - distance) % 8);
  }
  EXPECT_EQ(pairs("dissemination", 8), rounds);
  EXPECT_EQ(pairs("scheduled-MACHINE:rounds", 8), rounds);

  Pairs flat;
  for (unsigned rank = 1; rank < 12; ++rank) flat.insert({{0, rank}, {rank, 0}});
  EXPECT_EQ(pairs("sense-reversing-gr", 12), flat);
  EXPECT_EQ(pairs("scheduled-MACHINE:flat+line", 12), flat);

  // Two groups of eight: by core 0 leads 1 to 7, and 8 leads 9 to 15.
  Pairs groups = {{0, 8}, {8, 0}};
  for (unsigned rank = 1; rank < 8; ++rank) {
    groups.insert({{0, rank}, {rank, 0}, {8, rank + 8}, {rank + 8, 8}});
  }
  EXPECT_EQ(pairs("scheduled-L3:flat+line/all", 16), groups);
}

TEST(Waits, OfACounterAreForWhoeverCameBefore) {
  const Pairs all = pairs("sense-reversing", 12);
  // All but the first add after another one, and all but the last are released by the last.
  EXPECT_EQ(all.size(), 11U + 11U);
  std::set<unsigned> waited_for;
  for (const auto& [by, of] : all) waited_for.insert(of);
  EXPECT_EQ(waited_for.size(), 12U) << "everybody is";
}

TEST(Waits, AreSeenOfEveryBarrier) {
  for (const std::string& name : modelled_barriers()) {
    std::set<unsigned> waited_for;
    for (const auto& [by, of] : pairs(name.c_str(), 20, Mapping::numa)) waited_for.insert(of);
    EXPECT_EQ(waited_for.size(), 20U) << name;
  }
}

/// Rank 0's flag is read by all others, from 100 dies.
TEST(Waits, ReachAllOfManyDies) {
  const auto assumed = [](const char* shape) {
    return assumed_machine(Topology::from_synthetic(shape), shape);
  };
  const MachineModel machine = assumed("package:100 core:2 pu:1");
  std::set<unsigned> released;
  for (const Wait& wait : waits_of(machine, {"sense-reversing-counter", 200}).waits) {
    if (wait.of == 0) released.insert(wait.by);
  }
  EXPECT_EQ(released.size(), 199U);
  EXPECT_THROW(waits_of(assumed("package:129 core:2 pu:1"), {"mcs", 4}), Error);
  EXPECT_EQ(first_die(die_bit(99) | die_bit(127)), 99U);
  EXPECT_EQ(first_die(die_bit(99) | die_bit(63)), 63U);
}

}  // namespace
}  // namespace muster::sim
