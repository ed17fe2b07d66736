// SPDX-License-Identifier: BSD-3-Clause
// The one test for every barrier: participants write plain data, meet, and read what all the others
// wrote, while random delays move them against each other. A barrier that lets somebody leave early
// shows stale data (under ThreadSanitizer a race), one that loses an arrival hangs until its waits
// run out of patience.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness.hpp"

namespace muster::test {

/// A barrier under test, whatever it is made of.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual unsigned participants() const = 0;
  /// One episode of one rank, in the way `random` decides. Empty, or why it gave up.
  virtual std::string wait(unsigned rank, Random& random) = 0;
  virtual std::string describe() const = 0;
};

struct Trial {
  std::uint64_t seed = 0;
  unsigned episodes = 1000;  ///< at most
  unsigned budget_ms = 100;  ///< then it ends, if it has had `episodes_min`; MUSTER_SOAK extends it
  bool processes = false;
  bool bind = false;  ///< ranks to CPUs in random order; else they wander
};

/// However busy the machine is.
inline constexpr unsigned episodes_min = emulated ? 8 : 40;

/// Runs `trial` over one barrier, or over several that the same team uses in turn. Empty, or what
/// went wrong.
std::string run_trial(const std::vector<Subject*>& barriers, const Trial& trial);

/// Episodes that all trials of this program have completed.
std::uint64_t episodes_run();

}  // namespace muster::test
