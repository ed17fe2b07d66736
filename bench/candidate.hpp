// SPDX-License-Identifier: BSD-3-Clause
// Who is measured by `muster bench barrier` and in the turns of `bench mpi`, while it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/barrier_row.hpp"
#include "bench/latency.hpp"
#include "bench/mpi_run.hpp"
#include "bench/regime.hpp"
#include "bench/stats.hpp"
#include "bench/team.hpp"

namespace muster::bench {

/// A row in the making.
struct Candidate {
  Row row;
  TeamSpec spec;
  std::unique_ptr<Team> team;  // null: over
  std::vector<std::vector<double>> blocks;
  std::vector<Turn> turns;
  std::vector<LatencySample> singles;
  std::int64_t cpu_ns = 0;
  std::vector<double> skews;
  Activity activity;
  std::int64_t used_ns = 0;
  const MpiContender* contender = nullptr;  // null: it is not launched

  std::string name() const {
    if (!row.ours) return row.implementation;
    return row.regime != nullptr && row.is_fixed() ? row.algorithm + ", " + row.wait_asked
                                                   : row.algorithm;
  }

  void end(RowStatus status, std::string reason) {
    row.status = status;
    row.reason = std::move(reason);
    if (team != nullptr) row.episodes = team->episodes();
    team.reset();
  }

  /// What its turns brought.
  void fill_row(std::uint64_t seed) {
    double episodes = 0;
    for (const Turn& turn : turns) episodes += turn.episodes;
    row.mean_ns = mean_of(turns);
    row.mean_ci95 = mean_interval(turns, seed);
    row.cpu_ns = static_cast<double>(cpu_ns) / episodes;
    row.singles_ns = latency_distribution(std::move(singles));
    row.latency_ns = summarize(blocks, seed);
    row.exit_skews = skews.size();
    if (!skews.empty()) row.exit_skew_ns = median(skews);
    if (turns.empty() || (row.regime == nullptr && row.latency_ns.samples == 0)) {
      row.status = RowStatus::did_not_finish;
      row.reason = "not one episode ended in its time: raise --seconds";
    }
  }
};

/// Candidates that are measured in turn: of one regime, mode and number of participants.
struct Group {
  const Regime* regime = nullptr;
  Mode mode = Mode::threads;
  unsigned participants = 0;
  std::vector<Candidate> candidates;
};

}  // namespace muster::bench
