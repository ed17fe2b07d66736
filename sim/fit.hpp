// SPDX-License-Identifier: BSD-3-Clause
// Fitting a machine's free parameters to measured latencies.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/measurements.hpp"

namespace muster::sim {

struct FitOptions {
  /// Parameters or latencies by name. A handful of measurements identifies about four.
  std::vector<std::string> free = {"poll-turn", "read-occupancy", "agent-occupancy", "set-fill"};
  unsigned evaluations = 400;        ///< of all measurements
  unsigned starts = 4;               ///< of the search; the first is where the machine is
  unsigned samples = 8;              ///< tried for the machine's ensemble
  unsigned sample_evaluations = 50;  ///< of all measurements, for each of them
  Effort effort{8, 20, 0, 1};
  std::uint64_t seed = 1;
  /// Told now and then how far it is and how good the best is so far (rms of the log ratios).
  std::function<void(unsigned evaluations, double rms)> progress;
};

struct FitResult {
  MachineModel machine;             ///< with the fitted values, their provenance, samples and error
  std::vector<std::string> fitted;  ///< what has new values: options.free, and perhaps `message`
  std::vector<double> modelled_us;  ///< in the order of the measurements
  double rms = 0;                   ///< of log(modelled / measured)
  double median_error = 0;          ///< of |modelled / measured - 1|
  unsigned evaluations = 0;
};

/// The setting with the least rms of log(modelled / measured), by Nelder and Mead's simplex from
/// several starts, or a search of the whole line for a single parameter, in the logarithms of the
/// parameters, inside their bounds. Then the same again
/// with other values for whatever the machine file calls uncertain: what fits nearly as well
/// becomes the machine's samples. Barriers over messages (base-*) among others do not take part in
/// that: they fit `message` alone, afterwards. Deterministic. Throws Error(unknown_name, invalid).
FitResult fit(const MachineModel& machine, const std::vector<Measurement>& measured,
              const FitOptions& options);

}  // namespace muster::sim
