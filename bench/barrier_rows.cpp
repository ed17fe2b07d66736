// SPDX-License-Identifier: BSD-3-Clause
// What is said of rows that belong together: pure functions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/barrier_run.hpp"
#include "bench/report.hpp"
#include "machine/format.hpp"

namespace muster::bench {

std::vector<unsigned> default_participants(unsigned cpus) {
  std::vector<unsigned> counts;
  for (unsigned count = 2; count <= std::max(8U, 2 * cpus); count *= 2) counts.push_back(count);
  return counts;
}

namespace {

constexpr std::uint64_t kPairedSeed = 1;

RatioTo compare(const Row& row, const Row* base) {
  if (base == nullptr) return {};
  return {row.typical_ns() / base->typical_ns(), !overlap(row.interval_ns(), base->interval_ns()),
          paired_ratio(row.rounds_ns(), base->rounds_ns(), kPairedSeed)};
}

}  // namespace

std::string Row::where() const {
  return mpi.empty() ? counted(participants, mode_name(mode))
                     : counted(participants, "ranks") + ", " + mpi;
}

void rank_rows(std::vector<Row>& rows) {
  const Row* best_peer = nullptr;
  const auto ranked = [](const Row& row) {
    return row.status == RowStatus::ok && (row.ours || row.kind == Other::peer);
  };
  for (const Row& row : rows) {
    if (!ranked(row) || row.ours) continue;
    if (best_peer == nullptr || row.typical_ns() < best_peer->typical_ns()) best_peer = &row;
  }
  const Row* limit = nullptr;
  for (const Row& row : rows) {
    if (row.implementation == "limit" && row.status == RowStatus::ok) limit = &row;
  }
  for (Row& row : rows) {
    row.to_best_peer = ranked(row) ? compare(row, best_peer) : RatioTo{};
    row.to_limit = &row != limit && row.status == RowStatus::ok ? compare(row, limit) : RatioTo{};
    if (!ranked(row)) continue;
    row.place = 1;
    row.tied = false;
    for (const Row& other : rows) {
      if (&other == &row || !ranked(other)) continue;
      if (other.interval_ns().hi < row.interval_ns().lo) ++row.place;
      if (overlap(other.interval_ns(), row.interval_ns())) row.tied = true;
    }
  }
}

std::size_t surely_fastest(const std::vector<const Row*>& rows, const Noise& noise) {
  std::size_t found = 0;
  if (noise.noisy || rows.front()->status != RowStatus::ok) return found;
  for (std::size_t n = 1; n < rows.size(); ++n) {
    const Row& row = *rows[n];
    if (row.status != RowStatus::ok || row.interval_ns().hi >= rows.front()->interval_ns().lo)
      continue;
    if (found == 0 || row.typical_ns() < rows[found]->typical_ns()) found = n;
  }
  return found;
}

Conclusion<Row> conclude(const std::vector<const Row*>& group) {
  Conclusion<Row> result;
  for (const Row* row : group) {
    if (row->status != RowStatus::ok) continue;
    if (row->is_auto()) result.take(result.automatic, *row);
    if (row->is_fixed()) result.take(result.best_own, *row);
    if (!row->ours && row->kind == Other::peer) result.take(result.best_peer, *row);
  }
  return result;
}

std::vector<MpiConclusion> conclude_mpis(const std::vector<const Row*>& rows) {
  std::vector<MpiConclusion> all;
  for (const Row* row : rows) {
    if (row->mpi.empty() || !row->ours || !(row->to_best_peer.ratio > 0)) continue;
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const MpiConclusion& c) { return c.mpi == row->mpi; });
    if (found == all.end()) found = all.insert(found, {row->mpi, 1, 0});
    ++found->rows;
    found->to_own *= std::pow(row->to_best_peer.ratio / found->to_own, 1.0 / found->rows);
  }
  return all;
}

}  // namespace muster::bench
