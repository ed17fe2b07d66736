// SPDX-License-Identifier: BSD-3-Clause
// Programs around the sleep protocol of wait/sleep.hpp, the very text that the hardware machine
// runs: spin once, then sleep. A lost wake-up shows as a hang, since a sleep here never ends by
// itself unless the program says so; announcements that are not taken back show at the end.
#pragma once

#include <string>
#include <vector>

#include "check/checked.hpp"

namespace muster::check {

struct SleepProgram {
  std::string name;
  std::string what;
};

/// Their names and what happens in each.
const std::vector<SleepProgram>& sleep_programs();

/// The program of that name; the tuning must outlive it. Throws Error(unknown_name).
Program make_sleep_program(const std::string& name, Tuning& tuning);

}  // namespace muster::check
