// SPDX-License-Identifier: BSD-3-Clause
// The results of `muster bench barrier` for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/barrier_run.hpp"

namespace muster::bench {

/// One object; `results` has a row per implementation, mode and number of participants.
nlohmann::ordered_json to_json(const RunResults& results);

/// The rows of to_json(), flat, with a line of names; numbers of what did not finish are empty.
std::string to_csv(const RunResults& results);

/// A table per mode and number of participants, the fastest first, for a terminal.
std::string to_text(const RunResults& results);

/// "812 ns", "2.31 us", "15.2 ms": three digits.
std::string format_ns(double value);

/// Writes `text` to a file beside `path` first and renames it, so that nobody ever reads half of
/// it. Throws Error(system).
void write_file(const std::string& path, const std::string& text);

}  // namespace muster::bench
