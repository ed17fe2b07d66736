// SPDX-License-Identifier: BSD-3-Clause
// The results of `muster bench barrier` for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/barrier_run.hpp"

namespace muster::bench {

/// One object; `results` has a row per implementation, mode and number of participants.
nlohmann::ordered_json to_json(const RunResults& results);

/// The rows of to_json(), flat, with a line of names; numbers of what did not finish are empty.
std::string to_csv(const RunResults& results);

/// A table per mode and number of participants, the fastest first, for a terminal.
std::string to_text(const RunResults& results);

}  // namespace muster::bench
