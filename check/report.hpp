// SPDX-License-Identifier: BSD-3-Clause
// Executions for people: who read what from whom, in an order in which it could have happened.
#pragma once

#include <string>

#include "check/explore.hpp"

namespace muster::check {

/// The execution of a violation, a line per event: number, rank, what it did, with which memory
/// order, whose write it read, and where that stands in the source. Then what is wrong with it.
std::string format_violation(const Program& program, const Violation& violation);

/// "src/barrier/mcs.hpp:53": from the source tree's root, wherever that was.
std::string format_site(const Site& site);

}  // namespace muster::check
