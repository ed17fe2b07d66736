// SPDX-License-Identifier: BSD-3-Clause
// What is checked of a station: its crew, the numbers of its locks, and their faults.
#include "check/suite/station.hpp"

#include <type_traits>

namespace muster::check {
namespace {

Program rehearse(const LockScenario& scenario, Tuning& tuning, CrewFault fault) {
  return rehearse_crew(scenario, tuning, fault);
}
Program rehearse(const LockScenario& scenario, Tuning& tuning, NumbersFault fault) {
  return rehearse_numbers(scenario, tuning, fault);
}

template <class Fault>
HandWritten mutant(const char* name, Fault fault) {
  HandWritten made{name, {}};
  for (const LockScenario& scenario : station_scenarios()) {
    if (has_numbers(scenario.variant) != std::is_same_v<Fault, NumbersFault>) continue;
    made.programs.push_back({scenario.name(), [scenario, fault](Tuning& tuning) {
                               return rehearse(scenario, tuning, fault);
                             }});
  }
  return made;
}

}  // namespace

bool has_numbers(LockVariant variant) {
  return variant == LockVariant::reused || variant == LockVariant::owners;
}

std::vector<LockScenario> station_scenarios() {
  using V = LockVariant;
  std::vector<LockScenario> all;
  const auto add = [&](unsigned clients, unsigned sections, V variant) {
    all.push_back({station_name, clients, sections, variant});
  };
  add(1, 1, V::ended);
  add(1, 1, V::reused);
  add(2, 1, V::owners);
  add(2, 1, V::reused);
  add(1, 2, V::reused);
  add(3, 1, V::reused);
  add(3, 1, V::owners);
  add(2, 2, V::reused);
  add(2, 2, V::roused);
  add(2, 2, V::unmade);
  add(2, 3, V::aside);
  add(2, 3, V::watched);
  add(2, 2, V::interrupted);
  add(2, 4, V::again);
  add(2, 4, V::ahead);
  add(2, 4, V::overlooked);
  add(3, 3, V::crowd);
  return all;
}

Program rehearse_station(const LockScenario& scenario, Tuning& tuning) {
  return has_numbers(scenario.variant) ? rehearse_numbers(scenario, tuning)
                                       : rehearse_crew(scenario, tuning);
}

std::vector<HandWritten> hand_written_stations() {
  using enum CrewFault;
  return {
      mutant("crew: who becomes a spare does not ring", leaves_unrung),
      mutant("crew: who becomes a spare does not rouse the watchdog", leaves_unroused),
      mutant("crew: who ends the server does not ring", ends_unrung),
      mutant("crew: a spare wanted and not called", spare_uncalled),
      mutant("crew: a spare called and not wanted", spare_unwanted),
      mutant("crew: spares not called at the end", spares_uncalled),
      mutant("crew: spares called before the end is said", stops_late),
      mutant("crew: a watchdog roused and not called", watchdog_uncalled),
      mutant("crew: a watchdog that looks once", watchdog_dozes),
      mutant("crew: the mutex given back before the wait", waits_late),
      mutant("crew: roles without a mutex", no_mutex),
      mutant("crew: a thread counted that is not made", hires_nobody),
      mutant("crew: ended before the last thread", ends_early),
      mutant("crew: a section that has waited not noticed", blocks_unseen),
      mutant("numbers: given back while a request is pending", NumbersFault::pending_unseen),
      mutant("numbers: given back while the lock is held", NumbersFault::held_unseen),
      mutant("numbers: given out without a mutex", NumbersFault::no_mutex),
  };
}

}  // namespace muster::check
