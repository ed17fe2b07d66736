// SPDX-License-Identifier: BSD-3-Clause
#include "placement/core_tree.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace muster {

namespace {

LevelMask all_levels() {
  return {{LevelKind::l2, LevelKind::l3, LevelKind::numa, LevelKind::group, LevelKind::die,
           LevelKind::package}};
}

}  // namespace

CoreTree::CoreTree(const Topology& topology) {
  const std::vector<Level> bottom_up = topology.active_levels(all_levels()).levels;
  levels_.emplace_back("MACHINE");
  for (auto level = bottom_up.rbegin(); level != bottom_up.rend(); ++level) {
    levels_.push_back(level->name);
  }
  // From the root down, a core goes from its element to the one for its unit of the next level.
  // path[core]: the elements passed through, so far numbered as they are met.
  elements_.push_back({});
  const auto cores = static_cast<unsigned>(topology.cores().size());
  std::vector<std::vector<unsigned>> path(cores, {0});
  unsigned depth = 0;
  for (auto level = bottom_up.rbegin(); level != bottom_up.rend(); ++level) {
    ++depth;
    std::map<std::pair<unsigned, unsigned>, unsigned> element_of_unit;
    for (unsigned core = 0; core < cores; ++core) {
      const unsigned unit = level->unit_of(topology.cores()[core].pus.front());
      if (!is_unit(unit)) continue;
      const unsigned parent = path[core].back();
      const auto [at, is_new] =
          element_of_unit.try_emplace({parent, unit}, static_cast<unsigned>(elements_.size()));
      if (is_new) elements_.push_back({depth, parent, 0, 0});
      path[core].push_back(at->second);
    }
  }
  place_cores(path);
  find_numa(topology);
}

void CoreTree::place_cores(const std::vector<std::vector<unsigned>>& path) {
  const auto cores = static_cast<unsigned>(path.size());
  // Elements are numbered within a level by their first cores. Where a core hangs between elements,
  // it goes where its number puts it: siblings are ordered by the first core of each.
  std::vector<unsigned> first_core(elements_.size(), cores);
  for (unsigned core = cores; core-- > 0;) {
    for (const unsigned element : path[core]) first_core[element] = core;
  }
  const auto key = [&](unsigned core, std::size_t depth) {
    return depth < path[core].size() ? first_core[path[core][depth]] : core;
  };
  order_.resize(cores);
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(), [&](unsigned a, unsigned b) {
    const std::size_t deepest = std::max(path[a].size(), path[b].size());
    for (std::size_t depth = 1; depth < deepest; ++depth) {
      const unsigned of_a = key(a, depth);
      const unsigned of_b = key(b, depth);
      if (of_a != of_b) return of_a < of_b;
    }
    return a < b;
  });
  position_.resize(cores);
  element_of_.resize(cores);
  for (Element& element : elements_) element.first = cores;
  for (unsigned at = 0; at < cores; ++at) {
    const unsigned core = order_[at];
    position_[core] = at;
    element_of_[core] = path[core].back();
    for (const unsigned number : path[core]) {
      elements_[number].first = std::min(elements_[number].first, at);
      elements_[number].end = at + 1;
    }
  }
}

void CoreTree::find_numa(const Topology& topology) {
  const Level* const level = topology.level(LevelKind::numa);
  std::map<unsigned, unsigned> os_index_of_unit;
  if (level != nullptr) {
    for (const Unit& unit : level->units) os_index_of_unit[unit.id] = unit.os_index;
  }
  std::map<unsigned, std::vector<unsigned>> cores_by_os_index;
  std::vector<unsigned> outside;
  for (unsigned core = 0; core < cores(); ++core) {
    const unsigned pu = topology.cores()[core].pus.front();
    const unsigned unit = level != nullptr ? level->unit_of(pu) : kOutside;
    (is_unit(unit) ? cores_by_os_index[os_index_of_unit[unit]] : outside).push_back(core);
  }
  for (auto& [os_index, cores] : cores_by_os_index) {
    numa_nodes_.push_back({os_index, std::move(cores)});
  }
  if (!outside.empty()) numa_nodes_.push_back({std::nullopt, std::move(outside)});
  numa_of_.resize(cores());
  for (unsigned numa = 0; numa < numa_nodes_.size(); ++numa) {
    for (const unsigned core : numa_nodes_[numa].cores) numa_of_[core] = numa;
  }
}

std::vector<unsigned> CoreTree::outwards_from(unsigned core, Itself itself) const {
  std::vector<unsigned> nearest;
  nearest.reserve(cores());
  // [first, end) is covered already.
  unsigned first = position_[core];
  unsigned end = first + (itself == Itself::left_out ? 1 : 0);
  for (unsigned number = element_of_[core];; number = elements_[number].parent) {
    const Element& element = elements_[number];
    if (element.size() > 1 || number == 0) {
      const auto at = order_.begin();
      nearest.insert(nearest.end(), at + element.first, at + first);
      nearest.insert(nearest.end(), at + end, at + element.end);
      first = element.first;
      end = element.end;
    }
    if (number == 0) return nearest;
  }
}

}  // namespace muster
