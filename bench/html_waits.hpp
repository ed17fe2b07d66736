// SPDX-License-Identifier: BSD-3-Clause
// What the report says of waits in MPI programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace muster::bench {

/// Of the lines that jobs wrote by MUSTER_REPORT (doc/mpi.md): how much of their waits was for
/// whom. Throws nlohmann::json::exception for what is no such line.
std::string html_of_waits(const std::vector<nlohmann::ordered_json>& jobs);

}  // namespace muster::bench
