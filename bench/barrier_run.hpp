// SPDX-License-Identifier: BSD-3-Clause
// `muster bench barrier`, from options to results: who is measured, in which order, for how long.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/conclusion.hpp"
#include "bench/contestant.hpp"
#include "bench/host.hpp"
#include "bench/latency.hpp"
#include "bench/mpi_run.hpp"
#include "bench/noise.hpp"
#include "bench/regime.hpp"
#include "bench/run.hpp"
#include "bench/stats.hpp"

namespace muster::bench {

struct RunOptions {
  /// "all": auto and every registered one. Empty: all, and with regimes auto.
  std::vector<std::string> algorithms;
  std::vector<unsigned> participants;  ///< empty: see default_participants()
  std::vector<Mode> modes{Mode::threads};
  std::string map_by = "core";     ///< core, numa, socket, none
  std::string topology;            ///< of ours, imposed: a file or synthetic description; empty:
                                   ///< MUSTER_TOPOLOGY, else this machine
  std::vector<std::string> waits;  ///< of ours; empty: auto, and with regimes all policies
  std::vector<std::string> peers{"all"};  ///< names, "ck" for its five, "all", "none"
  std::vector<std::string> hidden;        ///< contestants for tests
  /// Instead of all these, with regimes: MPI_Barrier, each MPI's own beside ours under it. Those of
  /// one MPI follow one another.
  std::vector<MpiContender> mpi;
  std::string via = "c";  ///< how ours are called: c, template, both
  /// Everyone runs under each of these, in turns of `turn_ms` (bench/measure.hpp), which say what a
  /// wait costs that is interrupted. Empty: what the machine is like, in batches of episodes.
  std::vector<std::string> regimes;
  double turn_ms = 150;
  /// For everything but the statistics at the end; see longest_s(). Nothing: 27, and with regimes
  /// what the turns take.
  std::optional<double> seconds;
  unsigned rounds = 0;     ///< 0: 7 turns; as many slices as have 40 ms each, 5 to 20
  std::uint64_t seed = 1;  ///< of the bootstrap
};

inline constexpr double kSecondsDefault = 27;

/// How long a run of `seconds` may take, but for the statistics at the end: a quarter more, 2 s at
/// least, if some contestants hang in an episode, and 5 s if the last one hangs before the first.
double longest_s(double seconds);

/// Powers of two up to twice the CPUs, at least to 8: a core each, and oversubscribed.
std::vector<unsigned> default_participants(unsigned cpus);

/// A row beside another one of its group.
struct Comparison {
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
  Comparison to_best_peer;  ///< of ours and of the peers
  Comparison to_limit;      ///< of all but the limit itself, where it was measured

  /// "4 threads", "4 ranks, MPICH 4.0.2"
  std::string where() const;
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

struct RunResults {
  RunOptions options;
  Host host;
  unsigned cpus = 0;              ///< usable
  std::string topology;           ///< by which ours group their ranks
  bool topology_imposed = false;  ///< it is not this machine's
  double ping_pong_ns = 0;        ///< median round trip; 0 if not measured, or not well
  double elapsed_s = 0;
  unsigned rounds = 0;   ///< of the last group
  bool stopped = false;  ///< by Ctrl-C: the last group may have fewer rounds, others are missing
  Noise noise;           ///< of the whole run
  std::vector<LeftOut> left_out;
  std::vector<Row> rows;  ///< in groups of equal regime, mode and participants
};

/// Of a group that was measured in turns; `best_own` is of our fixed wait policies.
Conclusion<Row> conclude(const std::vector<const Row*>& group);

/// Ours under one MPI in one regime, as a multiple of the MPI's own: the geometric mean of the
/// ratios of means.
struct MpiConclusion {
  std::string mpi;
  double to_own = 0;
  unsigned rows = 0;  ///< of ours that have an own one beside them, at least one
};
/// Of those of one regime; none of an MPI without such rows.
std::vector<MpiConclusion> conclude_mpis(const std::vector<const Row*>& rows);

/// Throws Error for options that run_barriers() would refuse: unknown_name, invalid, and
/// unsupported for a peer that is missing here.
void check(const RunOptions& options);

/// Measures. Forks: the calling process must have one thread only. `report` is called between
/// slices. Throws what check() throws; what one contestant does wrong is in its row.
RunResults run_barriers(const RunOptions& options,
                        const std::function<void(const Progress&)>& report);

/// Fills place, tied and the comparisons of rows that belong together. Separate for the tests.
void rank_rows(std::vector<Row>& rows);

}  // namespace muster::bench
