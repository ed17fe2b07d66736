// SPDX-License-Identifier: BSD-3-Clause
// Programs around the mutexes of lock/parking*.hpp, the very text that unmodified programs run
// under `muster run`: sections that change plain data, participants that sleep. A lost wake-up
// shows as a hang, two inside as a race; so does an access to a mutex that somebody has freed.
#pragma once

#include <string>
#include <vector>

#include "check/suite/mutation.hpp"

namespace muster::check {

enum class MutexVariant : std::uint8_t {
  plain,
  timed,   ///< one waits with a deadline, which may pass at any time
  tries,   ///< one tries and goes
  freed,   ///< whoever is the last inside frees the mutex as soon as it is out
  forked,  ///< the mutex was waited for by threads that are not in this process
  left,    ///< the same, and the last one tries and goes
  queued,  ///< it is free, and all wait already, in order: those with a queue
  awake,   ///< the same, but the last one comes later, and nobody loses patience
  woken,   ///< anybody's first sleep may end for no reason
  passed,  ///< who is first may claim the word at any time, as where it is timed
  front,   ///< one is at the front, the others come there, and all go without the word
};
const char* variant_name(MutexVariant variant);

/// What goes wrong in a mutant that no order expresses.
enum class MutexFault : std::uint8_t {
  none,
  wakes_nobody,      ///< a wake-up is forgotten
  sleeps_blindly,    ///< without another look at the word
  forgets_sleepers,  ///< who has slept takes the front as if it were alone
  touches_late,      ///< the word is looked at after it was given
  drops_claims,      ///< who gives the word leaves no claim in it
};

struct MutexScenario {
  std::string mutex;
  unsigned participants = 2;
  unsigned sections = 1;  ///< of the first; the others have one each
  MutexVariant variant = MutexVariant::plain;

  std::string name() const;  ///< "mcs, 2 participants, 1 section"
};

/// The program; the tuning must outlive it. Throws Error(unknown_name).
Program make_mutex_program(const MutexScenario& scenario, Tuning& tuning,
                           MutexFault fault = MutexFault::none);

std::vector<std::string> checked_mutexes();

/// What is checked about one of them, cheapest first.
std::vector<MutexScenario> mutex_scenarios(const std::string& mutex);

/// The gate's programs: of all of them, since they share most of their text.
std::vector<Rehearsed> mutation_programs_of_mutexes();

/// Mutants that no order expresses.
std::vector<HandWritten> hand_written_mutexes();

}  // namespace muster::check
