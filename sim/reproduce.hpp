// SPDX-License-Identifier: BSD-3-Clause
// The lock experiments of [P17] and [PS18] on their machines, modelled: every figure's curves, and
// every claim that the papers' texts make about them, with what the model says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/lock_predict.hpp"

namespace muster::sim {

/// A point of a figure.
struct FigurePoint {
  std::string figure;   ///< "P17 Fig. 5", "PS18 Fig. 5a", ...
  std::string machine;  ///< "oak" or "jet"
  std::string variant;  ///< "DefaultMalloc", "RCLLockInitNUMA", ...
  Pattern pattern = Pattern::sequential;
  unsigned threads = 0;
  std::string placement;      ///< placement_text(); empty: the mean over all of them
  bool hierarchical = false;  ///< it is RCLHierarchicalAffinity's
  LockOutcome outcome;
};

enum class Verdict { agrees, partly, disagrees };
std::string_view verdict_name(Verdict verdict);

struct Claim {
  std::string source;    ///< "[PS18], Fig. 6"
  std::string claim;     ///< what the paper says
  std::string modelled;  ///< what the model says, with figures
  Verdict verdict = Verdict::disagrees;
  std::string rule;  ///< when it would agree, and when partly
};

/// What the papers' texts claim, held against the points of all their figures, as reproduce() makes
/// them: none may be missing. Pure.
std::vector<Claim> judge(const std::vector<FigurePoint>& points);

struct Reproduction {
  std::vector<FigurePoint> points;
  std::vector<Claim> claims;
  double change_max = 0;  ///< what the second window changed, of any run: LockOutcome::change
  std::size_t placements_oak = 0;  ///< distinct up to symmetry, in Figs. 6 and 7
  std::size_t placements_jet = 0;
};

/// Runs everything. `quick`: fewer operations and points, for tests; the claims are the same.
Reproduction reproduce(const MachineModel& oak, const MachineModel& jet, bool quick,
                       std::uint64_t seed, const LockProgress& progress);

}  // namespace muster::sim
