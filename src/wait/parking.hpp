// SPDX-License-Identifier: BSD-3-Clause
// How often a mutex's client looks before it sleeps, and when it has been passed over for too long
// (lock/parking.hpp): a pure function of what it has seen. Hardware (machine/parking_port.hpp) and
// the modelled machine (sim/sleeping.hpp) do what it says.
#pragma once

#include <cstdint>

#include "wait/policy.hpp"

namespace muster {

class Parking {
 public:
  /// Pauses before the next look, after so many looks; 0: it sleeps. Half a microsecond in all:
  /// eight threads whose section moves ten lines lose a fifth with less, two beside other programs
  /// lose a fifth with four times as much. Looks are seldom: the line has to come back to who
  /// writes it.
  static constexpr unsigned pauses(unsigned looks) noexcept { return looks < 5 ? 1U << looks : 0; }
  /// Twenty times what its waking up takes: it mostly has the mutex sooner, and a hand-over while
  /// it sleeps costs a twentieth at most.
  static constexpr std::int64_t overdue_ns = 20 * WaitPolicy::sleep_costs_ns;

  /// Since it was first asked.
  constexpr bool is_overdue(std::int64_t now_ns) noexcept {
    if (asked_ns_ < 0) asked_ns_ = now_ns;
    return now_ns - asked_ns_ > overdue_ns;
  }

 private:
  std::int64_t asked_ns_ = -1;
};

}  // namespace muster
