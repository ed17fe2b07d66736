// SPDX-License-Identifier: BSD-3-Clause
// The program around lock/crew.hpp, lock/ahead.hpp and lock/term.hpp: a server's threads execute
// sections, some of which block until another one is executed. Nobody polls: who sleeps does so
// until it is woken, and the watchdog until it is called, or a section blocks. Requests, rounds and
// the bell are the simplest there can be: the real ones have programs of their own.
#pragma once

#include <vector>

#include "check/checked.hpp"
#include "check/suite/lock_scenario.hpp"
#include "check/suite/mutation.hpp"

namespace muster::check {

/// What a crew's machine does wrong.
enum class CrewFault : std::uint8_t {
  none,
  leaves_unrung,      ///< who becomes a spare does not ring
  leaves_unroused,    ///< nor does it rouse the watchdog
  ends_unrung,        ///< who ends the server does not ring
  spare_uncalled,     ///< a spare is wanted, and not called
  spare_unwanted,     ///< it is called, and not wanted
  spares_uncalled,    ///< spares are not called at the end
  stops_late,         ///< they are called before it is said that this is the end
  watchdog_uncalled,  ///< roused, it is not called
  watchdog_dozes,     ///< roused, it looks once and naps for long again
  waits_late,         ///< who is about to wait gives the mutex back before
  no_mutex,           ///< roles change at any time
  hires_nobody,       ///< a thread that cannot be made is counted
  ends_early,         ///< a server has ended before its last thread
  blocks_unseen       ///< nobody knows which section has waited
};

/// The program, for a variant that has a crew.
Program rehearse_crew(const LockScenario& scenario, Tuning& tuning,
                      CrewFault fault = CrewFault::none);

/// What the machine of lock/numbers.hpp does wrong, for the owner of a lock that ends.
enum class NumbersFault : std::uint8_t {
  none,
  pending_unseen,  ///< requests that name the lock
  held_unseen,     ///< who has it
  no_mutex         ///< two owners at once
};

Program rehearse_numbers(const LockScenario& scenario, Tuning& tuning,
                         NumbersFault fault = NumbersFault::none);

/// What is checked of a station.
inline constexpr const char* station_name = "station";
std::vector<LockScenario> station_scenarios();
bool has_numbers(LockVariant variant);  ///< else it has a crew
Program rehearse_station(const LockScenario& scenario, Tuning& tuning);
/// Each with all scenarios of what has the fault.
std::vector<HandWritten> hand_written_stations();

}  // namespace muster::check
