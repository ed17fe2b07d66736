// SPDX-License-Identifier: BSD-3-Clause
// The barrier that fits a machine: searches what compose.hpp can make, in the model.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/predict.hpp"

namespace muster::sim {

struct TuneEffort {
  unsigned starts = 4;     ///< recipes that each set of levels is improved from; 1 or more
  unsigned finalists = 8;  ///< that are run at length, with intervals
  Effort final;            ///< how long those
};

/// Best first: the finalists of the search, and among them the best barrier that is not composed.
/// `team`: whatever its barrier. Deterministic. `tell` gets the share that is done, 0 to 1, and how
/// many barriers were tried. Throws as prepare().
std::vector<Predicted> tune(const MachineModel& machine, const Query& team,
                            const TuneEffort& effort,
                            const std::function<void(double share, unsigned tried)>& tell);

}  // namespace muster::sim
