// SPDX-License-Identifier: BSD-3-Clause
// `muster bench barrier`, from options to results: who is measured, in which order, for how long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/barrier_row.hpp"
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

struct RunResults {
  RunOptions options;
  Host host;
  unsigned cpus = 0;              ///< usable
  std::string topology;           ///< by which ours group their ranks
  bool topology_imposed = false;  ///< it is not this machine's
  double ping_pong_ns = 0;        ///< median round trip; 0 if not measured, or not well
  double elapsed_s = 0;
  unsigned rounds = 0;           ///< of the last group
  std::size_t without_time = 0;  ///< rows for which no time was left
  bool stopped = false;  ///< by Ctrl-C: the last group may have fewer rounds, others are missing
  Noise noise;           ///< of the whole run
  std::vector<LeftOut> left_out;
  std::vector<Row> rows;  ///< in groups of equal regime, mode and participants
};

/// Of a group that was measured in turns; `best_own` is of our fixed wait policies.
Conclusion<Row> conclude(const std::vector<const Row*>& group);

/// The fastest of those whose intervals are below the first one's: a position in `rows`, 0 if there
/// is nobody. Where it was noisy nothing is sure.
std::size_t surely_fastest(const std::vector<const Row*>& rows, const Noise& noise);

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
