// SPDX-License-Identifier: BSD-3-Clause
// What `muster bench barrier` finds of one barrier in one setting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/contestant.hpp"
#include "bench/latency.hpp"
#include "bench/noise.hpp"
#include "bench/regime.hpp"
#include "bench/run.hpp"
#include "bench/stats.hpp"

namespace muster::bench {

/// A row beside another one of its group.
struct RatioTo {
  double ratio = 0;  ///< of the medians, in turns of the means; 0: there is nothing to compare with
  bool intervals_apart = false;  ///< else no order is claimed
  PairedRatio paired;            ///< round by round
};

struct Row {
  std::string mpi;             ///< under which it is a barrier; empty: none
  std::string implementation;  ///< "muster", a peer's name, "limit" or "ping-pong"
  std::string algorithm;       ///< as asked for; a peer's own where known
  std::string via;             ///< of ours: "c", "template" or "messages"
  std::string serves;          ///< of ours: the algorithm that serves
  Other::Kind kind = Other::peer;
  bool ours = false;
  unsigned participants = 0;
  Mode mode = Mode::threads;
  std::string map_by;
  const Regime* regime = nullptr;  ///< null: it was not measured in turns
  std::string wait_asked;          ///< of ours
  std::string wait;                ///< of ours: the policy in use; else "its own"

  RowStatus status = RowStatus::ok;
  std::string reason;                    ///< why not ok
  double mean_ns = 0;                    ///< of an episode: all of the time over all episodes
  Interval mean_ci95;                    ///< of that
  Summary latency_ns;                    ///< of an episode, by batches of them; not in turns
  LatencyDistribution singles_ns;        ///< of single episodes, by rank 0's clock; in turns
  double cpu_ns = 0;                     ///< CPU time of an episode, all participants'; in turns
  std::vector<double> round_medians_ns;  ///< NaN where it had no turn
  std::vector<double> round_means_ns;    ///< the same, interruptions included
  double exit_skew_ns = 0;               ///< median of last exit minus first exit
  std::size_t exit_skews = 0;            ///< episodes that it is the median of
  std::uint64_t episodes = 0;            ///< finished
  double seconds = 0;                    ///< that it had, in all its slices
  Noise noise;
  /// How many of its group are surely faster (their intervals are below this one's), plus one;
  /// `tied` if another one has the same place or an interval that meets this one's. 0 for those
  /// that are not ranked: the references, and whoever did not finish.
  unsigned place = 0;
  bool tied = false;
  RatioTo to_best_peer;  ///< of ours and of the peers
  RatioTo to_limit;      ///< of all but the limit itself, where it was measured

  /// "4 threads", "4 ranks, MPICH 4.0.2"
  std::string where() const;
  bool is_ours() const { return ours; }
  bool is_fixed() const { return ours && wait_asked != "auto"; }
  bool is_auto() const { return ours && algorithm == "auto" && wait_asked == "auto"; }
  double mean() const { return mean_ns; }
  bool is_better_than(const Row& other) const { return mean_ns < other.mean_ns; }
  bool is_in_group_of(const Row& other) const {
    return regime == other.regime && mode == other.mode && participants == other.participants &&
           mpi == other.mpi;
  }
  /// What rows are compared by, and the same in each round.
  double typical_ns() const { return regime != nullptr ? mean_ns : latency_ns.median; }
  const Interval& interval_ns() const { return regime != nullptr ? mean_ci95 : latency_ns.ci95; }
  const std::vector<double>& rounds_ns() const {
    return regime != nullptr ? round_means_ns : round_medians_ns;
  }
};

}  // namespace muster::bench
