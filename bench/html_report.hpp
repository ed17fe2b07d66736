// SPDX-License-Identifier: BSD-3-Clause
// What the result files of a folder say, as one page that needs no network: machine, levels,
// measured beside predicted, pictures, and how to do it again. A pure function.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace muster::bench {

struct ReportSource {
  std::string folder;  ///< its name, for the title
  /// What stands in measure.json, doctor.json, barrier.json, lock.json, mpi.json, sim.json,
  /// sim-lock.json and validate.json, by these names without ".json"; any of them may be missing.
  std::map<std::string, nlohmann::ordered_json> results;
  std::vector<nlohmann::ordered_json> waits;    ///< each line of waits.jsonl (MUSTER_REPORT)
  std::map<std::string, std::string> pictures;  ///< SVGs, by their names without ".svg"
};

/// The names that `results` may have, in the order in which they come.
const std::vector<std::string>& reported_results();

/// Throws Error(invalid), naming the file, where one is not what the command writes.
std::string html_report(const ReportSource& source);

}  // namespace muster::bench
