// SPDX-License-Identifier: BSD-3-Clause
// What the reports of all measurements are made of.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/host.hpp"
#include "bench/noise.hpp"
#include "bench/run.hpp"
#include "bench/stats.hpp"

namespace muster::bench {

using Json = nlohmann::ordered_json;

/// In multiples of `unit`; null if it is not finite.
Json rounded(double value, double unit);

/// model, architecture, cpus, kernel.
Json machine_to_json(const Host& host, unsigned cpus);
/// commit (null if unknown) and compiler.
Json build_to_json(const Host& host);

const char* verdict(const Noise& noise);  ///< "quiet" or "noisy"
Json noise_to_json(const Noise& noise);

/// `ratio` and `ci95`; null if no round had both.
Json ratio_to_json(const PairedRatio& ratio);

Json left_out_to_json(const std::vector<LeftOut>& items);
/// A line for each reason.
std::string left_out_to_text(const std::vector<LeftOut>& items);

/// A field of a CSV: quoted where it has to be, empty for null.
std::string csv_field(const Json& value);

/// A ratio of speeds as a person says it: "0.71", "1.04", "1.4", "370", "25000", "1/14".
std::string format_times(double ratio);

/// "812 ns", "2.31 us", "15.2 ms": three digits.
std::string format_ns(double value);

}  // namespace muster::bench
