// SPDX-License-Identifier: BSD-3-Clause
#include "fitting/fitting.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "fitting/known_machines.hpp"

namespace muster {
namespace {

/// In the model of six servers, 3 to 192 ranks, some of these on some set of levels is within 1 %
/// of the best on average. The first ones tell which set that is, the last pay for few alone.
constexpr std::string_view recipes[] = {"tree8+line8/all",        "count5+line8/count4+direct8",
                                        "count4+line8/all",       "all",
                                        "tree8+line4x2/all",      "flat+line2/all",
                                        "count+line/flat+direct8"};
constexpr std::size_t telling = 2;
constexpr std::size_t for_many = 5;
constexpr std::size_t participants_all_tried = 32;
/// The first episodes of so few tell little of the later ones.
constexpr std::size_t participants_at_length = 8;
/// Each tells each: that is the square of messages, and never the quickest for so many.
constexpr std::size_t members_telling_all = 24;

/// Over these groups: where too many would tell each other they gather as those below; empty if
/// nothing is left of it.
std::string_view recipe_over(const GroupTree& groups, std::string_view text) {
  const Recipe recipe = parse_recipe(text);
  const std::size_t levels = groups.levels.size();
  const std::size_t tellers = groups.levels.back().groups.front().members.size();
  const bool tell_all = part_for(recipe, levels - 1, levels).gather == LevelRecipe::Gather::all;
  if (!tell_all || tellers <= members_telling_all) return text;
  return recipe.size() > 1 ? text.substr(0, text.rfind('/')) : "";
}

}  // namespace

std::span<const std::string_view> fitted_recipes() { return recipes; }

std::vector<NamedGroups> all_groups(const Topology& topology, const std::vector<PuSet>& bindings) {
  std::vector<NamedGroups> ways;
  std::vector<std::string> sets = topology.level_sets();
  sets.emplace_back("MACHINE");
  for (const std::string& levels : sets) {
    Grouping grouping =
        group_ranks(topology.place(bindings, topology.active_levels(parse_level_mask(levels))));
    if (grouping.status != Status::ok) throw Error(grouping.status, grouping.reason);
    ways.push_back({levels, std::move(grouping.tree)});
  }
  return ways;
}

Fitting fit_barrier(const std::vector<NamedGroups>& ways, const Seats& seats, const Costs& costs) {
  Fitting best;
  const std::size_t participants = seats.levels.back().unit_of.size();
  const bool few = participants <= participants_all_tried;
  const bool at_length = participants <= participants_at_length;
  const NamedGroups* best_way = &ways.front();
  const auto estimate = [&](const GroupTree& groups, std::string_view recipe) {
    if (recipe.empty()) return HUGE_VAL;
    try {
      return estimate_ns(compose(groups, parse_recipe(recipe)), seats, costs,
                         at_length || best.algorithm.empty() ? HUGE_VAL : best.ns);
    } catch (const Error& error) {
      if (error.code() != Status::invalid) throw;
      return HUGE_VAL;  // too large for so many
    }
  };
  const auto try_all = [&](const NamedGroups& way, std::size_t first, std::size_t end) {
    for (std::size_t n = first; n < end; ++n) {
      const std::string_view recipe = recipe_over(way.groups, recipes[n]);
      const double ns = estimate(way.groups, recipe);
      if (ns == HUGE_VAL) continue;
      ++best.tried;
      if (best.algorithm.empty() || ns < best.ns) {
        best.algorithm = "scheduled-" + way.levels + ":" + std::string(recipe);
        best.ns = ns;
        best_way = &way;
      }
    }
  };
  for (const NamedGroups& way : ways) try_all(way, 0, few ? std::size(recipes) : telling);
  if (!few) try_all(*best_way, telling, for_many);
  return best;
}

Choice fit_choice(const Topology& topology, const std::vector<PuSet>& bindings,
                  const MachineCosts& machine) {
  const Fitting best = fit_barrier(all_groups(topology, bindings),
                                   seats_of(topology, bindings, machine), machine.costs);
  char us[16];
  std::snprintf(us, sizeof us, "%.2f", best.ns / 1000);
  return {parse_algorithm(best.algorithm), "the best of " + std::to_string(best.tried) +
                                               " composed for where the participants sit, " + us +
                                               " us estimated; costs: " + machine.source};
}

}  // namespace muster
