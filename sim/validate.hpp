// SPDX-License-Identifier: BSD-3-Clause
// How good a machine's model is against measured latencies, in the ways that matter to whoever
// chooses a barrier by it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/measurements.hpp"

namespace muster::sim {

/// Good predictions out of so many; shares of none are not defined.
struct Share {
  unsigned good = 0;
  unsigned all = 0;
};

/// For one number of ranks and one mapping: what following the model costs.
struct Pick {
  unsigned ranks;
  Mapping map_by;
  std::string chosen;  ///< the algorithm that the model thinks fastest
  std::string best;    ///< the one that was
  double regret;       ///< measured time of the chosen over the best's, minus 1
};

struct Ablation {
  std::string what;  ///< a mechanism's name; "" for the whole model
  double rms;        ///< of log(modelled / measured), nothing fitted again
  double median_error;
};

struct Validation {
  std::vector<Prediction> modelled;  ///< in the order of the measurements
  /// By the rule, where it has a measurement to scale.
  std::vector<std::optional<double>> naive_us;
  double median_error = 0;
  double rms = 0;
  Share within_35_percent;
  Share within_interval;
  Share pairs_ordered;       ///< of those in one ranks and mapping that differ by more than 15 %
  Share mapping_directions;  ///< of changes by more than 15 % from `core` to another mapping
  std::vector<Pick> picks;
  std::optional<double> naive_median_error;         ///< where it has one
  std::optional<double> median_error_beside_naive;  ///< the model's, on the same measurements
  std::vector<double> median_error_by_seed;         ///< three
  std::vector<Ablation> ablations;                  ///< the whole model first
};

/// What there is to compare. Each is the figure of `measured` beside the model's `modelled`.
Share pairs_ordered(const std::vector<Measurement>& measured, const std::vector<double>& modelled);
Share mapping_directions(const std::vector<Measurement>& measured,
                         const std::vector<double>& modelled);
std::vector<Pick> picks(const std::vector<Measurement>& measured,
                        const std::vector<double>& modelled);

/// Scaling without a model: a latency known for other ranks grows like their number for the
/// algorithms that are O(P), like the rounds of log2 P for the others; mappings change nothing.
std::optional<double> naive_us(const Query& query, const std::vector<Measurement>& known);

/// `known`: what the naive rule scales, perhaps empty. Throws as predict() does.
Validation validate(const MachineModel& machine, const std::vector<Measurement>& measured,
                    const std::vector<Measurement>& known, const Effort& effort);

}  // namespace muster::sim
