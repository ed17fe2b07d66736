// SPDX-License-Identifier: BSD-3-Clause
// Programs around the locks: each client has sections executed that change plain data, and reads
// what they left. What a lock promises is then that this has no race, no hang, and the right
// values, and that each section runs once. Locks with a server have a participant for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check/suite/lock_scenario.hpp"
#include "check/suite/mutation.hpp"

namespace muster::check {

/// The program; the tuning must outlive it. Throws Error(unknown_name).
Program make_lock_program(const LockScenario& scenario, Tuning& tuning);

/// Names of the locks that are checked: all that are over a machine, "rings" and "station".
std::vector<std::string> checked_locks();

/// What is checked about one of them, cheapest first. `all`: also what takes minutes.
std::vector<LockScenario> lock_scenarios(const std::string& lock, bool all = false);

/// The gate's programs for one of them.
std::vector<Rehearsed> mutation_programs_of_lock(const std::string& lock);

/// Mutants that no order expresses (lock_mutants.cmake).
std::vector<HandWritten> hand_written_locks();
/// One of them, with all scenarios of the lock that it is, or those of that variant.
HandWritten mutant_of_lock(const char* name, std::string_view lock, std::string_view variant,
                           Program (*rehearse)(const LockScenario&, Tuning&));

}  // namespace muster::check
