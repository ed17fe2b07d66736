// SPDX-License-Identifier: BSD-3-Clause
// Levels of a machine's memory hierarchy: their names, masks of names, and what a level groups.
// Plain data, no hwloc: topology.hpp fills it in, the model reads it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/pu_set.hpp"

namespace muster {

/// What the units of a level are. Names, as shown: CORE L1 L2 L3 NUMA GROUP DIE PACKAGE.
enum class LevelKind { core, l1, l2, l3, numa, group, die, package };

std::string_view level_name(LevelKind kind);

/// The kind of a name or alias in any case: SMT = CORE, SOCKET = PACKAGE, NUMANODE = NUMA, ...
/// Throws Error(Status::unknown_name) listing the valid ones.
LevelKind parse_level(std::string_view text);

/// Levels asked for by name [K22, section 2.2: shm-topo-NUMA-SOCKET, shm-topo-NUMA, ...]. Order and
/// repetitions do not matter: the machine orders its levels.
struct LevelMask {
  std::vector<LevelKind> kinds;  ///< empty: the default, L2 L3 NUMA PACKAGE [K22, step 1]
  bool machine_only = false;     ///< "MACHINE" alone: no level, one group of all
  bool is_default() const { return kinds.empty() && !machine_only; }
};

/// "NUMA-SOCKET", "numa,socket", "L3", "MACHINE"; "" and "default" are the default. Throws
/// Error(Status::unknown_name) for a name that is no level's.
LevelMask parse_level_mask(std::string_view text);

/// The kinds of a mask, or the default ones, each once, in the order of LevelKind.
std::vector<LevelKind> wanted_levels(const LevelMask& mask);

/// No unit: see unit_of_binding().
inline constexpr unsigned kSeveralUnits = ~0U;  ///< a binding that spans several units
inline constexpr unsigned kOutside = ~0U - 1;   ///< PUs that no unit covers (a die without memory)
constexpr bool is_unit(unsigned id) { return id < kOutside; }

/// One cache, NUMA node, die, package...: the PUs it serves.
struct Unit {
  unsigned id = 0;  ///< hwloc's logical index; the lowest, where several serve the same PUs
  /// The operating system's number of that object (of a NUMA node: for mbind).
  unsigned os_index = 0;
  std::vector<unsigned> other_ids;  ///< further objects over the same PUs (MCDRAM), ascending
  PuSet pus;                        ///< usable PUs; never empty, and in no other unit of the level
  std::vector<unsigned> cores;      ///< its cores: positions in Topology::cores(), ascending
};

/// All units of one kind; they do not overlap, and need not cover every PU.
struct Level {
  LevelKind kind = LevelKind::core;
  std::string name;                  ///< level_name(kind); "GROUP0", "GROUP1"... where groups nest
  std::vector<Unit> units;           ///< by id; ids may have gaps
  std::vector<unsigned> unit_of_pu;  ///< unit id by the PU's number, kOutside beyond and between

  unsigned unit_of(unsigned pu) const { return pu < unit_of_pu.size() ? unit_of_pu[pu] : kOutside; }
  /// The one unit that holds all of `pus`, or kSeveralUnits, or kOutside.
  unsigned unit_of_binding(const PuSet& pus) const;
  unsigned cores_per_unit_min() const;
  unsigned cores_per_unit_max() const;
};

/// A level that was asked for, or is in the default set, but groups nothing here.
struct DroppedLevel {
  std::string name;
  std::string reason;
};

/// What the group tree is built from: bottom up, each groups other cores than the ones below.
struct ActiveLevels {
  std::vector<Level> levels;
  std::vector<DroppedLevel> dropped;
};

}  // namespace muster
