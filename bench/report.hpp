// SPDX-License-Identifier: BSD-3-Clause
// What the reports of all measurements are made of.
#pragma once

#include <nlohmann/json_fwd.hpp>
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

std::string ns_or_dash(double value);  ///< "-" for NaN

/// `auto` in one setting of a regime, beside the best of what else there is.
struct BesideAuto {
  std::string where;      ///< "4 threads"
  std::string automatic;  ///< its figure; empty: it did not finish
  std::string own;        ///< the best of ours
  double to_own = 0;      ///< auto's mean as a multiple of that; 0: there is none
  std::string peer;
  double to_peer = 0;
};

/// How a sentence about them goes: "In hogs, auto `does` 1.2 times `own`, and 0.9 times `peer`."
struct BesideWords {
  std::string_view figure;  ///< over the column: "mean of auto"
  std::string_view does;    ///< "takes"
  std::string_view own;     ///< "the time of the best fixed policy"
  std::string_view peer;    ///< "that of the best peer"
};

/// A line each, and the sentence that closes a regime.
std::string beside_auto_to_text(std::string_view regime, const BesideWords& words,
                                const std::vector<BesideAuto>& settings);
Json beside_auto_to_json(const BesideAuto& setting);

/// "812 ns", "2.31 us", "15.2 ms": three digits.
std::string format_ns(double value);

}  // namespace muster::bench
