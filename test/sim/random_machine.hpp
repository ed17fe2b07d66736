// SPDX-License-Identifier: BSD-3-Clause
// Machines and arrival times nobody thought of: what a barrier has to hold on.
#pragma once

#include <string>

#include "sim/barrier_run.hpp"
#include "topology/tree.hpp"

namespace muster::sim {

struct RandomSetup {
  BarrierSetup setup;  ///< its shape has no groups yet
  GroupTree groups;    ///< by die and package of the random machine, or any other valid tree
  std::string text;    ///< for a failure's message
};

/// Always the same for the same seed.
RandomSetup random_setup(std::uint64_t seed);

}  // namespace muster::sim
