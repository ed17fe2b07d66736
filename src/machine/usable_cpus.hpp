// SPDX-License-Identifier: BSD-3-Clause
// How many CPUs this process may really use: its affinity mask (which the cpuset narrows) and the
// time its control groups grant it. Participants in excess of it must give up the CPU to each
// other.
#pragma once

#include <optional>
#include <string>

namespace muster {

/// CPUs in the calling thread's affinity mask, at least 1. Threads that it makes inherit the mask.
unsigned affinity_cpus() noexcept;

/// CPUs' worth of time per period that the tightest control group grants; nothing if none limits
/// it. Version 2's cpu.max, version 1's cpu.cfs_quota_us and
/// cpu.cfs_period_us, of the process's own group and of every visible ancestor. What cannot be read
/// or makes no sense limits nothing. `root` stands before every path, for tests.
std::optional<double> exact_cpu_quota(const std::string& root = "/");
/// The same, rounded up, at least 1.
std::optional<unsigned> cpu_quota(const std::string& root = "/");

/// The smaller of the two: at least 1. Asks the system anew each time (some 100 us): not for hot
/// paths. Thread-safe.
unsigned usable_cpus(const std::string& root = "/");

}  // namespace muster
