// SPDX-License-Identifier: BSD-3-Clause
// Programs around the locks: each client has sections executed that change plain data, and reads
// what they left. What a lock promises is then that this has no race, no hang, and the right
// values, and that each section runs once. Locks with a server have a participant for it.
#pragma once

#include <string>
#include <vector>

#include "check/suite/mutants.hpp"
#include "check/suite/mutation.hpp"

namespace muster::check {

enum class LockVariant : std::uint8_t {
  plain,
  server,     ///< a participant serves until the last client has done
  shutdown,   ///< until the first section is done; if a lock needs one, another server follows
  attended,   ///< as `server`, and the clients are known and used to it from the start
  closing,    ///< as `shutdown`, likewise
  newcomer,   ///< as `attended`, but for the last client
  two,        ///< as `attended`, with two locks, which clients use in turn
  drain,      ///< the first client only ends the server, when the others have posted
  yields,     ///< sections give the lock up in between: one that goes round executes, or two
  rings,      ///< no lock, but the request rings of two: clients, and who has either lock
  wraps,      ///< as `rings`, and numbers have one bit
  leaving,    ///< rings: clients post and do not wait, while a server leaves
  successor,  ///< the last participant goes on in the seat of the first client, which ends
  stranger    ///< as `successor`, with a new ticket: a fault
};
const char* variant_name(LockVariant variant);

struct LockScenario {
  std::string lock;
  unsigned clients = 2;
  unsigned sections = 1;  ///< of each client
  LockVariant variant = LockVariant::plain;

  std::string name() const;  ///< "mcs, 2 clients, 1 section"
  bool has_server() const;   ///< the last participant
  bool shuts_down() const;
  bool has_successor() const;  ///< the last participant
  unsigned known() const;      ///< so many clients from the start
};

/// The program; the tuning must outlive it. Throws Error(unknown_name).
Program make_lock_program(const LockScenario& scenario, Tuning& tuning);

/// Names of the locks that are checked: all that are over a machine, and "rings".
std::vector<std::string> checked_locks();

/// What is checked about one of them, cheapest first. `all`: also what takes minutes.
std::vector<LockScenario> lock_scenarios(const std::string& lock, bool all = false);

/// The gate's programs for one of them.
std::vector<Rehearsed> mutation_programs_of_lock(const std::string& lock);

/// Mutants that no order expresses, each with all scenarios of the lock that it is.
std::vector<HandWritten> hand_written_locks();

}  // namespace muster::check
