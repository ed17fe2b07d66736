// SPDX-License-Identifier: BSD-3-Clause
// Measured latencies to compare the model with: a CSV with the columns algorithm, ranks,
// latency_us and, optionally, map_by (core where it is missing).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/predict.hpp"

namespace muster::sim {

struct Measurement {
  Query query;
  double latency_us;
};

/// '#' begins a comment; other columns are ignored; a prefix "shm-" of an algorithm's name, as
/// [K22] has it, is dropped. Throws Error(invalid): "source:line: what is wrong", or it cannot be
/// read.
std::vector<Measurement> parse_measurements(const std::string& text, const std::string& source);
std::vector<Measurement> load_measurements(const std::string& file);
/// One file after another.
std::vector<Measurement> load_measurements(const std::vector<std::string>& files);

/// [K22]'s figures, as doc/results has them: "kunpeng-64-measured" and "kunpeng-128-measured". By
/// name, with their text.
const std::vector<std::pair<std::string_view, std::string_view>>& shipped_measurements();

/// How far off: log(modelled / measured), of each.
std::vector<double> log_ratios(const std::vector<double>& modelled,
                               const std::vector<Measurement>& measured);

/// The root of their mean square.
double rms_of(const std::vector<double>& modelled, const std::vector<Measurement>& measured);

/// |modelled / measured - 1|, of each; in the order of the measurements.
std::vector<double> relative_errors(const std::vector<double>& modelled,
                                    const std::vector<Measurement>& measured);

double median(std::vector<double> values);

}  // namespace muster::sim
