// SPDX-License-Identifier: BSD-3-Clause
// The group tree of the hierarchical barrier [K22, section 2.1]: plain data, no hwloc. Made by
// placement.hpp from the ranks' places on any machine, real or described, or by a caller; stored in
// segments; read by the barrier `topo` and by the model.
#pragma once

#include <string>
#include <vector>

namespace muster {

/// Ranks that share one unit of a level, or the leaders from below that do.
struct Group {
  std::vector<unsigned> members;                       ///< ascending ranks; never empty
  unsigned leader() const { return members.front(); }  ///< its lowest rank [K22, step 3]
};

/// The groups of one level, ordered by leader; at least one, possibly with a single member.
struct GroupLevel {
  std::string name;  ///< "L2", "L3", "NUMA", "PACKAGE", ...; "MACHINE" for the last
  std::vector<Group> groups;
};

/// Bottom up. What holds, and check_tree() checks:
/// 1. The last level has exactly one group, which joins all leaders and is led by rank 0.
/// 2. A rank's first group may be on any level: a rank that spans several units of a level, or uses
///    none of them, is lifted to the next level up.
/// 3. The leader of a group is a member of exactly one group of some level above, most often the
///    next one (it too may be lifted over a level); rank 0 leads each of its groups up to the last.
/// 4. Whoever is not the leader of a group is in no group above.
struct GroupTree {
  unsigned participants = 0;
  std::vector<GroupLevel> levels;
};

/// Empty if `tree` is what the comment above says, else one sentence with the first fault found.
/// Call it on every tree that comes from elsewhere. O(ranks + memberships); thread-safe.
std::string check_tree(const GroupTree& tree);

/// Ascending numbers as people read them: "0-31", "0,4,8,12", "0-124:4" (from 0 to 124 by 4),
/// "" for none. Runs are shortened from 3 numbers on, runs with a stride from 5 on.
std::string format_numbers(const std::vector<unsigned>& numbers);

/// The tree for a terminal, UTF-8, root first, a line per group:
///   MACHINE  leader 0  members 0,64
///   ├─ PACKAGE  leader 0  members 0,32
/// A group's children are the groups that its members lead below.
std::string format_tree(const GroupTree& tree);

}  // namespace muster
