// SPDX-License-Identifier: BSD-3-Clause
// What a measurement has to say about the machine it was made on, and about who else was there.
#pragma once

#include <cstdint>
#include <string>

#include "topology/pu_set.hpp"

namespace muster::bench {

struct Host {
  std::string model;         ///< of the CPU; "unknown" if the kernel does not tell
  std::string architecture;  ///< "x86_64"
  std::string kernel;        ///< "Linux 6.1.0"
  std::string compiler;      ///< of this program
  std::string commit;        ///< of this program; "" if it was not built in git
};

Host this_host();

/// Time since boot that a set of CPUs spent, from /proc/stat: counted in ticks of 10 ms or so.
struct CpuTimes {
  bool known = false;
  std::int64_t busy_ns = 0;   ///< in user mode, in the kernel, in interrupts
  std::int64_t steal_ns = 0;  ///< taken by the hypervisor
};

CpuTimes cpu_times(const PuSet& cpus);

}  // namespace muster::bench
