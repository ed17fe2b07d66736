// SPDX-License-Identifier: BSD-3-Clause
// What `muster run --report` tells: for which mutexes threads waited, and from where.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace muster {

/// Adds to the mutexes that are waited for longest what other mutexes, places or delegation would
/// make of them in the model, as `predicted`: of the machine that `--machine` names, or of this
/// one, or why not. `process` is a line that run/contention.c wrote. Some seconds at most, told on
/// standard error.
void predict_contention(nlohmann::json& process, const std::string& machine);

/// One process: a line that run/contention.c wrote. For people, in lines of at most 79 columns.
std::string format_contention(const nlohmann::json& process);

}  // namespace muster
