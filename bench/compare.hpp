// SPDX-License-Identifier: BSD-3-Clause
// `muster compare`: what got faster or slower from one run of a benchmark to another. Pure
// functions over the files that `bench barrier`, `bench lock` and `bench mpi` write.
//
// A run's rounds lie together, so they tell little of how far two runs of one build lie apart.
// Where each build has several runs, these tell. Where it has one, the others' implementations do:
// nobody changed them. What they have in common is the machine's drift, which is taken away in both
// cases; how far they scatter around it is what chance does to one row. Some rows and rounds are
// far off, so of several runs ours together are what most of the rows and rounds show.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/stats.hpp"

namespace muster::bench {

/// What was measured of one implementation in one setting.
struct RunRow {
  std::string what;   ///< "auto, 2 threads"
  std::string group;  ///< "2 threads": what is noisy alike
  bool ours = false;
  std::vector<double> rounds;    ///< the mean time of each that came to an end [ns]
  std::vector<double> by_round;  ///< the same of all; NaN where there is none
};

struct RunFile {
  std::string benchmark;  ///< "barrier", "lock" or "mpi"
  std::string machine;    ///< "AMD EPYC, 2 CPUs, x86_64"
  std::string settings;   ///< what else makes two runs comparable
  std::string commit;     ///< empty: not known
  bool noisy = false;     ///< as the benchmark itself said
  std::vector<RunRow> rows;
};

/// Whether it is what `bench barrier`, `lock` or `mpi` writes, by its name.
bool is_run(const nlohmann::ordered_json& json);

/// Throws Error(invalid), naming `source`, for what is no such file, or of another schema.
RunFile read_run(const nlohmann::ordered_json& json, const std::string& source);

struct Change {
  std::string what;
  double old_ns = 0;
  double new_ns = 0;
  double ratio = 1;  ///< of the times, new to old, without the drift
  Interval ci95{1, 1};
  bool is_told = false;  ///< from chance: one change in twenty comparisons of one build is
};

struct Comparison {
  std::size_t peers = 0;  ///< in both runs
  double drift = 1;       ///< of the peers' times
  double chance = 0;      ///< standard deviation, relative: of one row between two runs by chance;
                          ///< with several runs of each, of ours together from one to the next
  std::optional<Change> whole;        ///< ours together; nothing if there is no row in both. With
                                      ///< several runs of each, what most of ours did
  std::vector<Change> rows;           ///< ours, those first that changed most beyond chance
  std::vector<std::string> only_old;  ///< in some of the old runs, not in all of both
  std::vector<std::string> only_new;
};

/// One run of each, or two at least. Throws Error(invalid) for other numbers, and if fewer than
/// three of the others are in all of them: then nothing tells what the machine did.
Comparison compare_runs(const std::vector<RunFile>& old_runs, const std::vector<RunFile>& new_runs);

}  // namespace muster::bench
