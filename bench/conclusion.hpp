// SPDX-License-Identifier: BSD-3-Clause
// What the rows of one setting say of `auto`. A row tells its mean(), whether it is_better_than()
// another one, and whether it is_in_group_of() another one.
#pragma once

#include <vector>

namespace muster::bench {

/// How `auto` did in one group. Null: there is none that finished.
template <class Row>
struct Conclusion {
  const Row* automatic = nullptr;
  const Row* best_own = nullptr;
  const Row* best_peer = nullptr;

  /// auto's mean as a multiple of the other's; 0: there is nothing to compare.
  double to_own() const { return ratio_to(best_own); }
  double to_peer() const { return ratio_to(best_peer); }

  /// Keeps the better one.
  static void take(const Row*& best, const Row& row) {
    if (best == nullptr || row.is_better_than(*best)) best = &row;
  }

 private:
  double ratio_to(const Row* other) const {
    return automatic == nullptr || other == nullptr ? 0 : automatic->mean() / other->mean();
  }
};

/// Rows in their groups, which stand together.
template <class Row>
std::vector<std::vector<const Row*>> groups_of(const std::vector<Row>& rows) {
  std::vector<std::vector<const Row*>> groups;
  for (const Row& row : rows) {
    if (groups.empty() || !groups.back().front()->is_in_group_of(row)) groups.emplace_back();
    groups.back().push_back(&row);
  }
  return groups;
}

}  // namespace muster::bench
