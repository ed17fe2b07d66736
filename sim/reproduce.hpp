// SPDX-License-Identifier: BSD-3-Clause
// The papers' experiments on their machines, modelled: [K22]'s barriers, every figure of the locks
// of [P17] and [PS18], and every claim that the texts make about them, with what the model says.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/lock_predict.hpp"
#include "sim/predict.hpp"

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

/// A barrier of [K22, Fig. 4] (64 ranks) or [K22, Figs. 5 and 6] (128), in microseconds.
struct BarrierPoint {
  Query query;
  double latency_us = 0;
  std::optional<double> measured_us;  ///< as printed, where the project has it
};
std::vector<BarrierPoint> barrier_points(const MachineModel& kunpeng);

enum class Verdict { agrees, partly, disagrees };
std::string_view verdict_name(Verdict verdict);
Verdict verdict_of(bool agrees, bool partly);

/// Of something that is so many times as much as something else, by `ratio_rule`.
Verdict verdict_of_ratio(double ratio, double claimed);
inline constexpr const char* ratio_rule =
    "what is above 1 is within a factor of 1.5 of the paper's; partly: 1.05 or more";

struct Claim {
  std::string source;    ///< "[PS18], Fig. 6"
  std::string claim;     ///< what the paper says
  std::string modelled;  ///< what the model says, with figures
  Verdict verdict = Verdict::disagrees;
  std::string rule;  ///< when it would agree, and when partly
};

/// What [P17] and [PS18] claim, of those of which there are points: then all of its figures, as
/// reproduce() makes them. Pure.
std::vector<Claim> judge(const std::vector<FigurePoint>& points);

/// What [K22] claims; all of barrier_points(). Pure.
std::vector<Claim> judge_barriers(const std::vector<BarrierPoint>& points);

struct ReproduceMachines {
  MachineModel kunpeng;
  MachineModel oak;
  MachineModel jet;
};

struct ReproduceOptions {
  std::set<std::string> papers = {"K22", "P17", "PS18"};
  bool quick = false;  ///< fewer operations and points, for tests; the claims are the same
  std::uint64_t seed = 1;
};

struct Reproduction {
  std::vector<BarrierPoint> barriers;
  std::vector<FigurePoint> points;
  std::vector<Claim> claims;
  double change_max = 0;  ///< what the second window changed, of any run: LockOutcome::change
  std::size_t placements_oak = 0;  ///< distinct up to symmetry, in Figs. 6 and 7
  std::size_t placements_jet = 0;
};

Reproduction reproduce(const ReproduceMachines& machines, const ReproduceOptions& options,
                       const Progress& progress);

}  // namespace muster::sim
