// SPDX-License-Identifier: BSD-3-Clause
// Would another lock help, or other places? What a program's mutex was seen to be asked for, on the
// modelled machine: under the C library's mutex, the others of `muster run`, and delegation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/lock_predict.hpp"

namespace muster::sim {

/// A mutex as a program was seen to use it; times are means, nanoseconds.
struct Contention {
  unsigned threads = 0;  ///< that took it
  double held_ns = 0;    ///< a section of who had the mutex before, too: its data was there
  double apart_ns = 0;   ///< from a section's end to the next one's begin, of a thread
  double moved_ns = 0;   ///< how much longer a section is whose data another thread had
};

/// One way to run these sections.
struct Remedy {
  std::string lock;       ///< one of modelled_locks()
  bool near = false;      ///< threads on neighbouring cores; else on cores all over the machine
  double sections_s = 0;  ///< predicted
};

struct Remedies {
  std::vector<Remedy> all;  ///< the first is what is: "mutex-pthread", not near
  /// How many threads were modelled: each has a core. Where the program has more, these come as
  /// often as all of its would.
  unsigned threads = 0;
  unsigned lines = 0;  ///< of data that move with the mutex
  const Remedy& now() const { return all.front(); }
};

/// A server where the threads leave no core to it, and `near` where it is the same, are left out.
/// Deterministic. Throws as predict_locks(), and Error(invalid) for times that are none.
Remedies predict_remedies(const MachineModel& machine, const Contention& seen,
                          const SleepCosts& sleep, const Progress& progress);

/// What sleeping costs on this machine; takes some 20 ms. Two of the CPUs that the caller may use.
SleepCosts measure_sleep();

}  // namespace muster::sim
