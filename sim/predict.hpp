// SPDX-License-Identifier: BSD-3-Clause
// Questions to a machine: how long does this barrier take there, with so many ranks, mapped so?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/barrier_run.hpp"
#include "sim/machine_model.hpp"
#include "topology/tree.hpp"

namespace muster::sim {

struct Query {
  std::string algorithm;  ///< as parse_algorithm() takes it: "mcs", "topo-NUMA", "combining-tree:4"
  unsigned ranks = 1;
  Mapping map_by = Mapping::core;
  std::vector<PuSet> bindings = {};  ///< where they are instead; empty: as map_by says
};

struct Effort {
  unsigned warm_up = 8;
  unsigned measured = 20;
  unsigned members = 8;  ///< of the machine's ensemble besides itself; 0: no interval
  unsigned seeds = 1;    ///< runs of each, averaged
  unsigned seed = 1;     ///< of the first run
};

struct Prediction {
  double latency_us = 0;
  /// The ensemble's least and largest, widened by the model's known error.
  double latency_us_low = 0;
  double latency_us_high = 0;
  double exit_skew_us = 0;  ///< from the first to the last that leaves an episode, mean
  double exit_skew_us_low = 0;
  double exit_skew_us_high = 0;
};

/// Two latencies that differ by less are as good as equal.
inline constexpr double matters = 0.15;

struct Predicted {
  Query query;
  Prediction prediction;
  bool by_auto = false;  ///< `auto` was asked for, and is what the query says

  std::string asked() const { return by_auto ? "auto" : query.algorithm; }
};

/// A barrier made ready to run on a machine: the groups its shape points to live here.
struct Preparation {
  std::string name;  ///< as registered
  BarrierSetup setup;
  std::unique_ptr<GroupTree> groups;
  std::unique_ptr<Schedule> schedule;
};
/// Throws Error(unknown_name, invalid, unsupported or declined).
Preparation prepare(const MachineModel& machine, const Query& query, std::uint64_t seed = 1);

/// Runs one `effort.seeds` times: means of the times, the sum of the events.
BarrierOutcome outcome_of(const MachineModel& machine, const Query& query, const Effort& effort,
                          std::uint64_t first_seed, StackPool& pool);
/// Its latency: the period of an episode in microseconds.
double latency_us_of(const MachineModel& machine, const Query& query, const Effort& effort,
                     std::uint64_t first_seed, StackPool& pool, std::uint64_t* events = nullptr);

/// Told how much is done: runs over, and all. False: no more is begun.
using Progress = std::function<bool(std::size_t done, std::size_t of)>;

/// All of them, or the first ones, if `progress` ends it; on every CPU this process may use;
/// deterministic. Throws as prepare() does.
std::vector<Prediction> predict(const MachineModel& machine, const std::vector<Query>& queries,
                                const Effort& effort, const Progress& progress = {});

/// What `all` stands for on a machine: the classic barriers, combining trees of several radices,
/// and topo and topo-counter over every set of the active levels.
std::vector<std::string> all_algorithms(const MachineModel& machine);

/// The query's prediction, and behind it those of the `count` fastest other barriers that `all`
/// stands for, over messages none, and that `fits` says yes to: fastest first.
std::vector<Predicted> beside_best(const MachineModel& machine, const Query& query,
                                   std::size_t count,
                                   const std::function<bool(const Algorithm&)>& fits);

/// Calls job(0) to job(count - 1), each on one of as many threads as this process may use CPUs.
/// Rethrows the first exception by index. Returns how many from the first on were run.
std::size_t run_parallel(std::size_t count, const std::function<void(std::size_t, StackPool&)>& job,
                         const Progress& progress = {});

}  // namespace muster::sim
