// SPDX-License-Identifier: BSD-3-Clause
// `muster bench lock`, from options to results.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/barrier_run.hpp"
#include "bench/lock_team.hpp"

namespace muster::bench {

struct LockRunOptions {
  std::vector<std::string> locks{"all"};  ///< names, "all", "ours", "peers"
  std::vector<unsigned> threads;          ///< empty: 1, 2, 4 and 8, or as the regime has it
  std::vector<Pattern> patterns{Pattern::sequential, Pattern::random};
  std::uint64_t array = 50'000'000;  ///< words of 4 bytes
  std::uint64_t stride = 20;
  double readers = 0;                       ///< percent of the sections, which only read
  std::optional<std::uint64_t> operations;  ///< of all threads, in a round; instead of `seconds`
  /// Who else wants the CPUs (bench/regime.hpp): everyone runs under each, in turns of `turn_ms`.
  std::vector<std::string> regimes;
  double turn_ms = 150;
  std::optional<double> seconds;  ///< shared out equally; nothing: 28, or what turns take
  unsigned rounds = 5;
  std::uint64_t seed = 1;
  std::string map_by = "core";
};

struct LockRow {
  std::string lock;
  LockEntry::Kind kind = LockEntry::ours;
  unsigned threads = 0;
  Pattern pattern = Pattern::sequential;
  const Regime* regime = nullptr;  ///< null: none was asked for
  RowStatus status = RowStatus::ok;
  std::string reason;
  double mean_ops_s = 0;             ///< all operations over all of the time
  Interval mean_ci95;                ///< of that
  double cpu_ns = 0;                 ///< CPU time of an operation, its lock's whole process'
  Summary throughput_ops_s;          ///< of rounds; min is the slowest
  std::vector<double> rounds_ops_s;  ///< NaN where it had no turn
  LatencyDistribution latency_ns;
  double fairness = 0;  ///< most over fewest operations of a thread; infinite: one had none
  double cache_misses_percent = 0;  ///< NaN: the machine does not tell
  std::uint64_t operations = 0;
  PairedRatio to_pthread;  ///< throughput, round by round
  PairedRatio to_best;
  Noise noise;

  bool is_ours() const { return kind == LockEntry::ours; }
  double mean() const { return mean_ops_s; }
  bool is_better_than(const LockRow& other) const { return mean_ops_s > other.mean_ops_s; }
  bool is_in_group_of(const LockRow& other) const {
    return regime == other.regime && threads == other.threads && pattern == other.pattern;
  }
};

struct LockRunResults {
  LockRunOptions options;
  Host host;
  unsigned cpus = 0;
  double elapsed_s = 0;
  bool stopped = false;  ///< by Ctrl-C: the last group may have fewer rounds, others are missing
  Noise noise;
  std::vector<LeftOut> left_out;
  std::vector<LockRow> rows;  ///< in groups of equal regime, pattern and threads
};

/// `best_own` is of ours by name.
Conclusion<LockRow> conclude(const std::vector<const LockRow*>& group);

/// Throws Error for options that run_locks() would refuse.
void check(const LockRunOptions& options);

/// Measures. Forks: the calling process must have one thread only. Throws what check() throws, and
/// Error(no_memory).
LockRunResults run_locks(const LockRunOptions& options,
                         const std::function<void(const Progress&)>& report);

}  // namespace muster::bench
