// SPDX-License-Identifier: BSD-3-Clause
// Schedules from parts: for each level of a group tree, how its groups gather, what the topmost
// group does instead of having a champion, and how the groups learn that all have arrived.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "barrier/schedule.hpp"
#include "topology/tree.hpp"

namespace muster {

/// How the groups of one level gather and are released.
struct LevelRecipe {
  /// tree: who gathers polls its children's flags. counter: members add, in subgroups, and whoever
  /// is the last goes on. all: each tells each. rounds: dissemination. The last two leave everybody
  /// in the group with what all know: only the topmost group may gather so.
  enum class Gather : std::uint8_t { tree, counter, all, rounds };
  Gather gather = Gather::tree;
  unsigned radix = 8;     ///< children a vertex, or members a counter; 0: all
  unsigned readers = 16;  ///< that share a release line; 0: all. Not of a group that tells each
  unsigned fan_out = 0;   ///< lines that each released one stores in turn; 0: the leader stores all
  bool direct = false;    ///< releases all ranks below, not its members, who then release theirs

  bool exchanges() const { return gather == Gather::all || gather == Gather::rounds; }
  bool operator==(const LevelRecipe&) const = default;
};

/// A part a level, bottom up. Where there are more levels the last part is the topmost one's, and
/// the last but one that of those between. Empty: recipe_for().
using Recipe = std::vector<LevelRecipe>;

/// "tree8+line16/all": levels from the bottom up, separated by '/', each flat, treeK, count[K], all
/// or rounds, then +line[W], +direct[W] or +line[W]xF. Throws Error(invalid) with what is possible.
Recipe parse_recipe(std::string_view text);
std::string format_recipe(const Recipe& recipe);

/// The part of a recipe, which is not empty, that serves a level. The last part is the top's,
/// unless there are more parts than levels.
const LevelRecipe& part_for(const Recipe& recipe, std::size_t level, std::size_t levels);

/// What is taken where nobody says anything: trees of radix 8 whose leaders tell each other.
Recipe recipe_for(const GroupTree& groups);

/// The schedule of `recipe` over `groups`, which check_tree() accepts and which has a level. A rank
/// has `room` cells at most; 0: as many as it likes. Throws Error(invalid) if it is too large for
/// that, or to be meant. O(cells). Thread-safe.
Schedule compose(const GroupTree& groups, const Recipe& recipe, unsigned room = 0);

/// The same over `groups`, or one group of all participants where there are none, proved before
/// anybody uses it: throws Error(system) for what check_schedule() finds.
Schedule compose_proved(const GroupTree* groups, unsigned participants, const Recipe& recipe,
                        unsigned room = 0);

/// `groups`, or one group of all participants where there are none.
GroupTree groups_or_one(const GroupTree* groups, unsigned participants);

}  // namespace muster
