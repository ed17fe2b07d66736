// SPDX-License-Identifier: BSD-3-Clause
// The results of `muster bench lock` for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/lock_run.hpp"

namespace muster::bench {

/// One object; `results` has a row per lock, pattern and number of threads.
nlohmann::ordered_json to_json(const LockRunResults& results);
/// The rows, flat, with a line of names; what is not known is empty.
std::string to_csv(const LockRunResults& results);
/// A table per pattern and number of threads, the fastest first.
std::string to_text(const LockRunResults& results);

}  // namespace muster::bench
