// SPDX-License-Identifier: BSD-3-Clause
#include "sim/tune.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "barrier/compose.hpp"
#include "machine/error.hpp"

namespace muster::sim {
namespace {

using Gather = LevelRecipe::Gather;

constexpr unsigned radices[] = {0, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16};
constexpr unsigned readers[] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
constexpr unsigned fan_outs[] = {0, 1, 2, 3, 4};

/// Where the search begins on each set of levels: what was good on some machine or other.
constexpr std::string_view starts[] = {"tree8+line16/all", "count5+line8/count4+direct8",
                                       "tree8+line/count4+direct16", "count4+line4/rounds",
                                       "tree4+line4x2/tree4+line"};

/// Enough to tell barriers apart that differ by a few percent; shorter runs took others for best.
constexpr Effort coarse{.warm_up = 6, .measured = 12, .members = 0, .seeds = 1};

Query of_team(Query team, const std::string& algorithm) {
  team.algorithm = algorithm;
  return team;
}

class Search {
 public:
  Search(const MachineModel& machine, const Query& team, unsigned seed)
      : machine_(machine), team_(team), seed_(seed) {}

  unsigned tried() const { return static_cast<unsigned>(tried_.size()); }

  /// All names at once, on every CPU; each once.
  void try_all(const std::vector<std::string>& names) {
    std::vector<std::string> fresh;
    for (const std::string& name : names) {
      if (tried_.emplace(name, 0).second) fresh.push_back(name);
    }
    std::vector<double> latency_us(fresh.size());
    run_parallel(fresh.size(), [&](std::size_t n, StackPool& pool) {
      try {
        latency_us[n] = latency_us_of(machine_, of_team(team_, fresh[n]), coarse, seed_, pool);
      } catch (const Error& error) {
        if (error.code() != Status::invalid) throw;
        latency_us[n] = HUGE_VAL;  // a recipe too large for so many
      }
    });
    for (std::size_t n = 0; n < fresh.size(); ++n) tried_[fresh[n]] = latency_us[n];
  }

  /// One part of one level at a time, as long as that helps.
  void improve(const std::string& prefix, Recipe recipe) {
    const auto name = [&](const Recipe& of) { return prefix + ":" + format_recipe(of); };
    try_all({name(recipe)});
    for (bool better = true; better;) {
      better = false;
      for (std::size_t level = 0; level < recipe.size(); ++level) {
        for (const auto& changes : {gathers(recipe, level), releases(recipe, level)}) {
          std::vector<std::string> names;
          for (const Recipe& change : changes) names.push_back(name(change));
          try_all(names);
          for (const Recipe& change : changes) {
            if (tried_.at(name(change)) >= tried_.at(name(recipe))) continue;
            recipe = change;
            better = true;
          }
        }
      }
    }
  }

  /// Of equals the shortest name first.
  std::vector<std::pair<double, std::string>> best_first() const {
    std::vector<std::pair<double, std::string>> all;
    for (const auto& [name, latency_us] : tried_) all.emplace_back(latency_us, name);
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.first, a.second.size(), a.second) <
             std::tuple(b.first, b.second.size(), b.second);
    });
    return all;
  }

 private:
  static std::vector<Recipe> gathers(const Recipe& recipe, std::size_t level) {
    std::vector<Recipe> all;
    const auto add = [&](Gather gather, unsigned radix) {
      Recipe changed = recipe;
      changed[level].gather = gather;
      changed[level].radix = radix;
      all.push_back(changed);
    };
    for (const unsigned radix : radices) {
      add(Gather::tree, radix);
      add(Gather::counter, radix);
    }
    if (level + 1 < recipe.size() || level == 0) return all;
    add(Gather::all, 0);
    add(Gather::rounds, 0);
    return all;
  }

  static std::vector<Recipe> releases(const Recipe& recipe, std::size_t level) {
    std::vector<Recipe> all;
    if (recipe[level].exchanges()) return all;
    for (const bool direct : {false, true}) {
      if (direct && level == 0) continue;
      for (const unsigned count : readers) {
        for (const unsigned fan_out : fan_outs) {
          Recipe changed = recipe;
          changed[level].direct = direct;
          changed[level].readers = count;
          changed[level].fan_out = fan_out;
          all.push_back(changed);
        }
      }
    }
    return all;
  }

  const MachineModel& machine_;
  const Query& team_;
  unsigned seed_;
  std::map<std::string, double> tried_;
};

bool is_composed(const std::string& name) { return name.starts_with("scheduled"); }

}  // namespace

std::vector<Predicted> tune(const MachineModel& machine, const Query& team,
                            const TuneEffort& effort,
                            const std::function<void(double, unsigned)>& tell) {
  Search search(machine, team, effort.final.seed);
  std::vector<std::string> names;
  std::vector<std::string> prefixes = {"scheduled-MACHINE"};
  for (const std::string& name : all_algorithms(machine)) {
    if (name.starts_with("base-")) continue;
    names.push_back(name);
    const Algorithm algorithm = parse_algorithm(name);
    if (algorithm.name == "topo") prefixes.push_back("scheduled-" + algorithm.levels);
  }
  search.try_all(names);
  const unsigned from = std::min<unsigned>(effort.starts, std::size(starts));
  unsigned done = 0;
  for (const std::string& prefix : prefixes) {
    const LevelMask mask = parse_level_mask(prefix.substr(sizeof "scheduled"));
    const std::size_t levels = machine.shape->active_levels(mask).levels.size() + 1;
    for (unsigned n = 0; n < from; ++n, ++done) {
      if (tell) {
        tell(static_cast<double>(done) / (static_cast<double>(prefixes.size()) * from),
             search.tried());
      }
      const Recipe start = parse_recipe(starts[n]);
      Recipe recipe(levels, start.front());
      if (levels > 1) recipe.back() = start.back();
      search.improve(prefix, recipe);
    }
  }

  std::vector<Query> finalists;
  bool plain = false;
  double last_us = 0;
  for (const auto& [latency_us, name] : search.best_first()) {
    // To the bit as fast as the one before: most likely the same schedule by another name.
    const bool other = latency_us > last_us;
    last_us = latency_us;
    const bool wanted =
        (other && finalists.size() < effort.finalists) || (!plain && !is_composed(name));
    if (wanted) finalists.push_back(of_team(team, name));
    plain = plain || (wanted && !is_composed(name));
  }
  const std::vector<Prediction> predictions = predict(machine, finalists, effort.final);
  std::vector<Predicted> result;
  for (std::size_t n = 0; n < finalists.size(); ++n) {
    result.push_back({finalists[n], predictions[n]});
  }
  std::stable_sort(result.begin(), result.end(), [](const Predicted& a, const Predicted& b) {
    return a.prediction.latency_us < b.prediction.latency_us;
  });
  return result;
}

}  // namespace muster::sim
