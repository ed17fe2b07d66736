// SPDX-License-Identifier: BSD-3-Clause
// Which command makes such a result again.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace muster::bench {

/// Of what stands in `<name>.json` (reported_results()); it writes into a folder "results". What
/// the result does not tell is left to the command's defaults. A pure function; throws
/// nlohmann::json::exception if it is no such result.
std::string command_of(const std::string& name, const nlohmann::ordered_json& json);

}  // namespace muster::bench
