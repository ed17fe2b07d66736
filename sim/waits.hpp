// SPDX-License-Identifier: BSD-3-Clause
// Who waits for whom: everything that a participant hears from another one in an episode.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "sim/predict.hpp"
#include "sim/recorder.hpp"

namespace muster::sim {

/// `by` goes on when it has seen what `of` stored, or what `of` added to a counter before.
struct Wait {
  unsigned by;
  unsigned of;
  double told_ns;  ///< visible to everybody since; all times from the first arrival
  double heard_ns;
};

struct Waits {
  std::vector<Wait> waits;
  std::vector<std::pair<double, double>> inside_ns;  ///< by participant: arrives, leaves
};

/// Of one steady episode. Throws as prepare().
Waits waits_of(const MachineModel& machine, const Query& query);

}  // namespace muster::sim
