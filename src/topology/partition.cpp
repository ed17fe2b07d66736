// SPDX-License-Identifier: BSD-3-Clause
#include "topology/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace muster {

namespace {

// How many items share the unit of each item; 0 where there is no unit.
std::vector<std::size_t> unit_sizes(const Column& column) {
  std::unordered_map<unsigned, std::size_t> count;
  for (const unsigned id : column) ++count[id];
  std::vector<std::size_t> sizes(column.size());
  for (std::size_t i = 0; i < column.size(); ++i) {
    sizes[i] = is_unit(column[i]) ? count[column[i]] : 0;
  }
  return sizes;
}

// Positive if a's units are the smaller ones, over the items that have both.
long smaller_votes(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  long votes = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == 0 || b[i] == 0) continue;
    votes += (a[i] < b[i]) - (a[i] > b[i]);
  }
  return votes;
}

}  // namespace

bool same_groups(const Column& a, const Column& b) {
  if (a.size() != b.size()) return false;
  std::unordered_map<unsigned, unsigned> to_b;
  std::unordered_map<unsigned, unsigned> to_a;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (is_unit(a[i]) != is_unit(b[i])) return false;
    if (!is_unit(a[i])) continue;
    if (to_b.try_emplace(a[i], b[i]).first->second != b[i]) return false;
    if (to_a.try_emplace(b[i], a[i]).first->second != a[i]) return false;
  }
  return true;
}

bool shared(const Column& column) {
  const std::vector<std::size_t> sizes = unit_sizes(column);
  return std::any_of(sizes.begin(), sizes.end(), [](std::size_t size) { return size >= 2; });
}

std::vector<std::size_t> distinct_bottom_up(const std::vector<Candidate>& candidates,
                                            std::vector<DroppedLevel>& dropped,
                                            std::string_view items) {
  std::vector<std::size_t> by_preference;
  for (std::size_t c = 0; c < candidates.size(); ++c) by_preference.push_back(c);
  std::stable_partition(by_preference.begin(), by_preference.end(),
                        [&](std::size_t c) { return candidates[c].kind == LevelKind::numa; });

  std::vector<std::size_t> kept;
  for (const std::size_t c : by_preference) {
    const auto twin = std::find_if(kept.begin(), kept.end(), [&](std::size_t k) {
      return same_groups(candidates[k].column, candidates[c].column);
    });
    if (twin == kept.end()) {
      kept.push_back(c);
    } else {
      dropped.push_back({candidates[c].name,
                         fmt::format("groups the same {} as {}", items, candidates[*twin].name)});
    }
  }
  std::sort(kept.begin(), kept.end());

  std::vector<std::vector<std::size_t>> sizes;
  for (const Candidate& candidate : candidates) sizes.push_back(unit_sizes(candidate.column));
  std::vector<std::size_t> ordered;
  while (!kept.empty()) {
    const auto lower_ones = [&](std::size_t c) {
      return std::count_if(kept.begin(), kept.end(), [&](std::size_t other) {
        return smaller_votes(sizes[other], sizes[c]) > 0;
      });
    };
    const auto lowest = std::min_element(
        kept.begin(), kept.end(),
        [&](std::size_t a, std::size_t b) { return lower_ones(a) < lower_ones(b); });
    ordered.push_back(*lowest);
    kept.erase(lowest);
  }
  return ordered;
}

}  // namespace muster
