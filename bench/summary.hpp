// SPDX-License-Identifier: BSD-3-Clause
// What results say that a person can repeat: how ours compares with what people use, setting by
// setting, and three sentences. Pure functions of the JSON objects that the measurements write.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/stats.hpp"

namespace muster::bench {

/// How ours and the best of the others did in one setting. By means, since an interruption that a
/// median hides costs a program its time all the same.
struct Finding {
  enum Kind { threads, processes, lock, mpi, predicted_barrier, predicted_lock };
  Kind kind = threads;
  std::string where;   ///< "8 threads on 2 CPUs"
  std::string ours;    ///< its name
  std::string other;   ///< the best of the others by median of means; empty: there is none
  double ours_ns = 0;  ///< of an episode or a section; NaN: ours did not finish
  double other_ns = 0;
  bool no_turn = false;  ///< there was no time for ours
  PairedRatio faster;    ///< how many times as fast ours is, round by round; predicted: one round

  bool is_prediction() const { return kind >= predicted_barrier; }
  bool is_faster() const { return faster.rounds > 0 && faster.ci95.lo > 1; }  ///< surely
  bool is_slower() const;  ///< surely, or ours did not finish where another one did
};

struct ResultSummary {
  std::vector<Finding> findings;  ///< by kind
  std::string noise;              ///< why the measurement was noisy; empty: it was not
  std::string machine;            ///< that was measured
  std::string modelled;           ///< that the predictions are of
};

/// Reads one result object of `bench barrier`, `bench lock`, `bench mpi`, `sim barrier` or
/// `sim lock`. Throws Error(invalid) if it is none; `name` is what the error calls it.
void add_results(ResultSummary& summary, const nlohmann::ordered_json& results,
                 const std::string& name);

/// "1.4 times as fast", "370 times as fast", "2.5 times as slow": of a ratio of speeds.
std::string times_as_fast(double ratio);

/// A line for each finding, at most 80 columns.
std::string findings_to_text(const ResultSummary& summary);

/// Three sentences, a line each: who is fastest here, by how much, and what to do next.
std::vector<std::string> sentences(const ResultSummary& summary);

}  // namespace muster::bench
