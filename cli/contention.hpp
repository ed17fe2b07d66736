// SPDX-License-Identifier: BSD-3-Clause
// What `muster run --report` tells: for which mutexes threads waited, and from where.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace muster {

/// One process: a line that run/contention.c wrote. For people, in lines of at most 79 columns.
std::string format_contention(const nlohmann::json& process);

}  // namespace muster
