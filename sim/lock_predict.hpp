// SPDX-License-Identifier: BSD-3-Clause
// Questions to a machine about locks: how many critical sections a second, placed so?
#pragma once

#include <string>
#include <vector>

#include "sim/lock_placements.hpp"
#include "sim/lock_run.hpp"
#include "sim/machine_model.hpp"
#include "sim/predict.hpp"

namespace muster::sim {

struct LockQuery {
  std::string lock = "rcl";
  Pattern pattern = Pattern::sequential;
  std::uint64_t words = 500'000'000;  ///< of the array
  std::uint64_t stride = 20;
  LockPlacement placement;
  std::optional<Sections> sections = {};  ///< of a program, instead
  SleepCosts sleep = {};
  double readers = 0;  ///< of the sections, how many only read
};

struct LockEffort {
  std::uint64_t warm_up = 20'000;
  std::uint64_t window = 100'000;  ///< operations; as many again show that they suffice
  double slice_ns = 3e6;           ///< of a thread that shares its core
  std::uint64_t seed = 1;
};

/// What one machine is asked; `tree` is its.
struct LockBatch {
  const MachineModel& machine;
  const CoreTree& tree;
  std::vector<LockQuery> queries;
};

/// All of them, or of each batch the first ones, if `progress` ends it; on every CPU this process
/// may use; deterministic. Placements that are each other's image under a symmetry of the tree run
/// once. Throws as run_lock() does, what check_cores() throws before any runs.
std::vector<std::vector<LockOutcome>> predict_locks(const std::vector<LockBatch>& batches,
                                                    const LockEffort& effort,
                                                    const Progress& progress);
std::vector<LockOutcome> predict_locks(const MachineModel& machine, const CoreTree& tree,
                                       const std::vector<LockQuery>& queries,
                                       const LockEffort& effort, const Progress& progress);

}  // namespace muster::sim
