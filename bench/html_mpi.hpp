// SPDX-License-Identifier: BSD-3-Clause
// What the report says of MPI. Pure functions; they throw nlohmann::json::exception for what is no
// such result.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace muster::bench {

/// Of `bench mpi`: a bar for each barrier of each MPI, all on one logarithmic scale that begins at
/// a tenth of the fastest.
std::string html_of_mpi(const nlohmann::ordered_json& json);

/// Of the lines that jobs wrote by MUSTER_REPORT (doc/mpi.md): how much of their waits was for
/// whom.
std::string html_of_waits(const std::vector<nlohmann::ordered_json>& jobs);

}  // namespace muster::bench
