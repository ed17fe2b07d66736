// SPDX-License-Identifier: BSD-3-Clause
// What holds of every group tree, on random machines with random placements. A failure prints the
// seed; MUSTER_SEED replays it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "topology/topology.hpp"

namespace muster {
namespace {

using Random = std::mt19937;

unsigned pick(Random& random, unsigned low, unsigned high) {
  return std::uniform_int_distribution<unsigned>(low, high)(random);
}

// A random order of levels too: NUMA nodes inside or around packages and L3s.
std::string random_synthetic(Random& random) {
  std::vector<std::string> levels = {"package", "numa", "l3", "group", "l2"};
  if (pick(random, 0, 1) == 1) std::swap(levels[0], levels[1]);
  if (pick(random, 0, 1) == 1) std::swap(levels[1], levels[2]);
  std::string text;
  unsigned leaves = 1;
  for (const std::string& level : levels) {
    if (pick(random, 0, 3) == 0) continue;
    const unsigned count = pick(random, 1, leaves > 16 ? 2 : 4);
    leaves *= count;
    text += fmt::format("{}:{} ", level, count);
  }
  const unsigned cores = pick(random, 1, 4);
  return text + fmt::format("core:{} pu:{}", cores, pick(random, 1, 3));
}

std::vector<PuSet> random_bindings(Random& random, const Topology& topology) {
  const auto cores = static_cast<unsigned>(topology.cores().size());
  const unsigned ranks = pick(random, 1, 2 * cores + 3);
  const unsigned style = pick(random, 0, 4);
  if (style == 0) return topology.map_ranks(static_cast<Mapping>(pick(random, 0, 2)), ranks);
  std::vector<PuSet> bindings;
  while (bindings.size() < ranks) {
    const Core& core = topology.cores()[pick(random, 0, cores - 1)];
    PuSet binding;
    if (style == 1) {  // a core
      for (const unsigned pu : core.pus) binding.add(pu);
    } else if (style == 2) {  // a PU
      binding.add(core.pus[pick(random, 0, static_cast<unsigned>(core.pus.size()) - 1)]);
    } else if (style == 3 && !topology.levels().empty()) {  // a unit of some level
      const auto& levels = topology.levels();
      const Level& level = levels[pick(random, 0, static_cast<unsigned>(levels.size()) - 1)];
      const auto units = static_cast<unsigned>(level.units.size());
      binding = level.units[pick(random, 0, units - 1)].pus;
    } else {  // anything
      for (unsigned n = pick(random, 1, 3); n > 0; --n) {
        binding.add(topology.cores()[pick(random, 0, cores - 1)].pus[0]);
      }
    }
    if (cores > 1 && binding == topology.pus()) continue;
    bindings.push_back(binding);
  }
  return bindings;
}

void expect_good_tree(const GroupTree& tree, const ActiveLevels& active,
                      const std::vector<PuSet>& bindings) {
  ASSERT_EQ(check_tree(tree), "");
  ASSERT_EQ(tree.participants, bindings.size());
  std::map<std::string, const Level*> level_of;
  for (const Level& level : active.levels) level_of[level.name] = &level;

  std::vector<unsigned> memberships(bindings.size(), 0);
  std::vector<unsigned> leaderships(bindings.size(), 0);
  for (const GroupLevel& level : tree.levels) {
    const bool top = &level == &tree.levels.back();
    ASSERT_EQ(level_of.count(level.name), top ? 0U : 1U) << level.name;
    std::set<unsigned> units;
    for (const Group& group : level.groups) {
      ++leaderships[group.leader()];
      for (const unsigned rank : group.members) ++memberships[rank];
      if (top) continue;
      // All members use the same unit, and no other group does.
      const unsigned unit = level_of[level.name]->unit_of_binding(bindings[group.leader()]);
      ASSERT_TRUE(is_unit(unit));
      ASSERT_TRUE(units.insert(unit).second) << "two groups on one unit";
      for (const unsigned rank : group.members) {
        ASSERT_EQ(level_of[level.name]->unit_of_binding(bindings[rank]), unit) << rank;
      }
    }
  }
  for (unsigned rank = 0; rank < bindings.size(); ++rank) {
    // One more group than it leads; rank 0 leads them all.
    ASSERT_EQ(memberships[rank], leaderships[rank] + (rank == 0 ? 0 : 1)) << rank;
    // Its lowest group is on the lowest level whose unit holds its binding: nobody is lifted too
    // far.
    std::string expected = "MACHINE";
    for (const Level& level : active.levels) {
      if (is_unit(level.unit_of_binding(bindings[rank]))) {
        expected = level.name;
        break;
      }
    }
    std::string first;
    for (const GroupLevel& level : tree.levels) {
      for (const Group& group : level.groups) {
        for (const unsigned member : group.members) {
          if (member == rank && first.empty()) first = level.name;
        }
      }
    }
    ASSERT_EQ(first, expected) << "rank " << rank << " bound to " << bindings[rank].to_string();
  }
}

TEST(GroupTreeProperty, RandomMachinesAndPlacements) {
  const char* const replay = std::getenv("MUSTER_SEED");
  const auto first = static_cast<unsigned>(replay != nullptr ? std::atoi(replay) : 1);
  const unsigned last = replay != nullptr ? first : 300;
  unsigned levels_seen = 0;
  unsigned lifted_seen = 0;
  for (unsigned seed = first; seed <= last; ++seed) {
    Random random(seed);
    const std::string machine = random_synthetic(random);
    SCOPED_TRACE(fmt::format("replay with MUSTER_SEED={}: {}", seed, machine));
    const Topology topology = Topology::from_synthetic(machine);
    const std::vector<LevelMask> masks = {
        {}, parse_level_mask("NUMA-SOCKET"), parse_level_mask("CORE-L2-L3-GROUP-NUMA-PACKAGE")};
    for (const LevelMask& mask : masks) {
      const ActiveLevels active = topology.active_levels(mask);
      const std::vector<PuSet> bindings = random_bindings(random, topology);
      const Placement placement = topology.place(bindings, active);
      const Grouping grouping = group_ranks(placement);
      ASSERT_EQ(grouping.status, Status::ok) << grouping.reason;
      expect_good_tree(grouping.tree, active, bindings);
      if (HasFatalFailure()) return;
      levels_seen += static_cast<unsigned>(active.levels.size());
      if (!active.levels.empty()) {
        for (const unsigned unit : placement.unit[0]) lifted_seen += is_unit(unit) ? 0 : 1;
      }
      // Levels are ordered by containment: on these machines all of them nest.
      for (std::size_t l = 1; l < active.levels.size(); ++l) {
        for (const Unit& unit : active.levels[l - 1].units) {
          ASSERT_TRUE(is_unit(active.levels[l].unit_of_binding(unit.pus)))
              << active.levels[l - 1].name << " is not inside " << active.levels[l].name;
        }
      }
    }
  }
  if (replay == nullptr) {
    EXPECT_GT(levels_seen, 500U);  // the machines were not all flat,
    EXPECT_GT(lifted_seen, 500U);  // the placements not all on single units
  }
}

}  // namespace
}  // namespace muster
