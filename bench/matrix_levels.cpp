// SPDX-License-Identifier: BSD-3-Clause
#include "bench/matrix_levels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "bench/stats.hpp"

namespace muster::bench {
namespace {

/// What has to lie between two levels' distances, as among distance classes (sim/pair_matrix.cpp).
constexpr double apart = 1.10;
/// Groups that unite in pairs hold less than half of the pairs of the groups that they become.
constexpr double part = 0.5;

struct Join {
  unsigned into;  ///< a row of each of the two: the first one
  unsigned from;
  double ns;  ///< how far they are apart; not less than at the join before
};

/// All joins, nearest first.
std::vector<Join> join_all(const sim::PairMatrix& matrix) {
  const unsigned size = matrix.size;
  // Sums of logarithms, and how many, between groups: each goes by its first row.
  std::vector<double> sum(std::size_t{size} * size);
  std::vector<double> count(sum.size());
  for (unsigned a = 0; a < size; ++a) {
    for (unsigned b = 0; b < size; ++b) {
      if (a == b || !(matrix.at(a, b) > 0)) continue;
      sum[std::size_t{a} * size + b] = std::log(matrix.at(a, b));
      count[std::size_t{a} * size + b] = 1;
    }
  }
  std::vector<unsigned> alive(size);
  std::iota(alive.begin(), alive.end(), 0U);
  std::vector<Join> joins;
  while (alive.size() > 1) {
    Join nearest{alive[0], alive[1], std::numeric_limits<double>::infinity()};
    for (std::size_t j = 1; j < alive.size(); ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        const std::size_t at = std::size_t{alive[i]} * size + alive[j];
        if (count[at] > 0 && sum[at] / count[at] < nearest.ns)
          nearest = {alive[i], alive[j], sum[at] / count[at]};
      }
    }
    for (const unsigned other : alive) {
      for (auto* const matrices : {&sum, &count}) {
        double& there = (*matrices)[std::size_t{nearest.into} * size + other];
        there += (*matrices)[std::size_t{nearest.from} * size + other];
        (*matrices)[std::size_t{other} * size + nearest.into] = there;
      }
    }
    alive.erase(std::find(alive.begin(), alive.end(), nearest.from));
    nearest.ns = std::exp(nearest.ns);
    if (!joins.empty()) nearest.ns = std::max(nearest.ns, joins.back().ns);
    joins.push_back(nearest);
  }
  return joins;
}

Groups groups_after(const std::vector<Join>& joins, std::size_t count, unsigned size) {
  std::vector<unsigned> first(size);
  std::iota(first.begin(), first.end(), 0U);
  for (std::size_t n = 0; n < count; ++n)
    std::replace(first.begin(), first.end(), joins[n].from, joins[n].into);
  std::map<unsigned, unsigned> numbers;
  Groups groups;
  for (const unsigned row : first)
    groups.push_back(numbers.emplace(row, static_cast<unsigned>(numbers.size())).first->second);
  return groups;
}

std::vector<unsigned> sizes_of(const Groups& groups) {
  std::vector<unsigned> sizes(1 + *std::max_element(groups.begin(), groups.end()));
  for (const unsigned group : groups) ++sizes[group];
  return sizes;
}

bool is_level(const Groups& groups) {
  unsigned several = 0;
  unsigned held = 0;
  for (const unsigned rows : sizes_of(groups)) {
    if (rows < 2) continue;
    ++several;
    held += rows;
  }
  return several >= 2 && 2 * held >= groups.size();
}

}  // namespace

std::vector<PairLevel> classify_pairs(const sim::PairMatrix& matrix, std::vector<Groups> levels) {
  levels.emplace_back(matrix.size, 0U);
  std::vector<std::vector<double>> values(levels.size());
  for (unsigned a = 0; a < matrix.size; ++a) {
    for (unsigned b = 0; b < a; ++b) {
      if (!(matrix.at(a, b) > 0)) continue;
      std::size_t level = 0;
      while (levels[level][a] != levels[level][b]) ++level;
      values[level].push_back(matrix.at(a, b));
    }
  }
  std::vector<PairLevel> classes;
  for (std::size_t n = 0; n < levels.size(); ++n) {
    std::sort(values[n].begin(), values[n].end());
    classes.push_back({levels[n], sizes_of(levels[n]), values[n].size(), quantile(values[n], 0.5),
                       quantile(values[n], 0.1), quantile(values[n], 0.9)});
  }
  return classes;
}

FoundLevels find_levels(const sim::PairMatrix& matrix) {
  FoundLevels found;
  const std::vector<Join> joins = join_all(matrix);
  std::vector<Groups> all;
  for (std::size_t n = 1; n < joins.size(); ++n) {
    if (joins[n].ns < apart * joins[n - 1].ns) continue;
    Groups groups = groups_after(joins, n, matrix.size);
    if (is_level(groups)) all.push_back(std::move(groups));
  }
  for (;;) {
    found.levels = classify_pairs(matrix, all);
    const auto& levels = found.levels;
    std::size_t near = 0;
    for (; near < all.size(); ++near) {
      if (levels[near + 1].median_ns < apart * levels[near].median_ns) break;
      if (near + 1 < all.size() && agreement(all[near], all[near + 1]) >= part) break;
    }
    if (near == all.size()) break;
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(near));
  }
  // The innermost first: each next one puts its groups together, and keeps their order.
  found.order.resize(matrix.size);
  std::iota(found.order.begin(), found.order.end(), 0U);
  for (const PairLevel& level : found.levels) {
    std::stable_sort(found.order.begin(), found.order.end(),
                     [&](unsigned a, unsigned b) { return level.groups[a] < level.groups[b]; });
  }
  return found;
}

std::vector<NamedLevel> levels_on(const Topology& topology, const std::vector<unsigned>& cpus) {
  std::vector<NamedLevel> named;
  for (const Level& level : topology.levels()) {
    std::map<unsigned, unsigned> numbers;
    Groups groups;
    unsigned next = 0;
    for (const unsigned cpu : cpus) {
      const unsigned unit = level.unit_of(cpu);
      const bool is_new = !is_unit(unit) || numbers.emplace(unit, next).second;
      groups.push_back(is_new ? next++ : numbers.at(unit));
    }
    if (next < 2 || next == cpus.size()) continue;
    const auto same = std::find_if(named.begin(), named.end(),
                                   [&](const NamedLevel& one) { return one.groups == groups; });
    if (same == named.end()) {
      named.push_back({level.name, std::move(groups)});
    } else {
      same->name += ", " + level.name;
    }
  }
  const auto count = [](const NamedLevel& level) { return sizes_of(level.groups).size(); };
  std::stable_sort(named.begin(), named.end(),
                   [&](const NamedLevel& a, const NamedLevel& b) { return count(a) > count(b); });
  return named;
}

double agreement(const Groups& a, const Groups& b) {
  double both = 0;
  double either = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool in_a = a[i] == a[j];
      const bool in_b = b[i] == b[j];
      both += in_a && in_b ? 1 : 0;
      either += in_a || in_b ? 1 : 0;
    }
  }
  return either > 0 ? both / either : 1;
}

}  // namespace muster::bench
