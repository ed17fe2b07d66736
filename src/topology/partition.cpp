// SPDX-License-Identifier: BSD-3-Clause
#include "topology/partition.hpp"

#include <algorithm>
#include <unordered_map>

#include "machine/format.hpp"

namespace muster {

namespace {

// How many items share the unit of each item; 0 where there is no unit.
std::vector<std::size_t> unit_sizes(const Column& column) {
  std::unordered_map<unsigned, std::size_t> count;
  std::vector<std::size_t*> count_of;  // neighbours mostly share one: few are looked up
  for (std::size_t i = 0; i < column.size(); ++i) {
    const bool same = i > 0 && column[i] == column[i - 1];
    count_of.push_back(same ? count_of.back() : &count[column[i]]);
    ++*count_of.back();
  }
  std::vector<std::size_t> sizes(column.size());
  for (std::size_t i = 0; i < column.size(); ++i) {
    sizes[i] = is_unit(column[i]) ? *count_of[i] : 0;
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

bool covers(const Column& a, const Column& b) {
  const std::vector<std::size_t> size_a = unit_sizes(a);
  const std::vector<std::size_t> size_b = unit_sizes(b);
  std::unordered_map<unsigned, unsigned> a_of_b;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (size_b[i] < 2) continue;
    // One unit of a all over this one of b, and as large: the same items.
    if (size_a[i] != size_b[i] || a_of_b.try_emplace(b[i], a[i]).first->second != a[i])
      return false;
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
  const auto drop = [&](std::size_t c, std::size_t for_the_sake_of) {
    dropped.push_back({candidates[c].name, format("groups the same {} as {}", items,
                                                  candidates[for_the_sake_of].name)});
  };
  for (const std::size_t c : by_preference) {
    const Column& column = candidates[c].column;
    const auto wider = std::find_if(kept.begin(), kept.end(), [&](std::size_t k) {
      return covers(candidates[k].column, column);
    });
    if (wider != kept.end()) {
      drop(c, *wider);
      continue;
    }
    const auto narrower = std::stable_partition(kept.begin(), kept.end(), [&](std::size_t k) {
      return !covers(column, candidates[k].column);
    });
    for (auto k = narrower; k != kept.end(); ++k) drop(*k, c);
    kept.erase(narrower, kept.end());
    kept.push_back(c);
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
