// SPDX-License-Identifier: BSD-3-Clause
// Programs around the locks: each client has sections executed that change plain data, and reads
// what they left. What a lock promises is then that this has no race, no hang, and the right
// values, and that each section runs once. Locks with a server have a participant for it.
#pragma once

#include <string>
#include <vector>

#include "check/suite/mutation.hpp"

namespace muster::check {

enum class LockVariant : std::uint8_t {
  plain,
  server,    ///< a participant serves until the last client has done
  shutdown,  ///< a participant serves until the first client has done
  rings,     ///< no lock, but the request rings of two: a client, and who has either lock
};
const char* variant_name(LockVariant variant);

struct LockScenario {
  std::string lock;
  unsigned clients = 2;
  unsigned sections = 1;  ///< of each client
  LockVariant variant = LockVariant::plain;

  std::string name() const;  ///< "mcs, 2 clients, 1 section"
};

/// The program; the tuning must outlive it. Throws Error(unknown_name).
Program make_lock_program(const LockScenario& scenario, Tuning& tuning);

/// Names of the locks that are checked: all that are over a machine, and "rings".
std::vector<std::string> checked_locks();

/// What is checked about one of them, cheapest first.
std::vector<LockScenario> lock_scenarios(const std::string& lock);

/// The gate's programs for one of them.
std::vector<Rehearsed> mutation_programs_of_lock(const std::string& lock);

}  // namespace muster::check
