// SPDX-License-Identifier: BSD-3-Clause
// How quiet the machine was while something was measured.
#pragma once

#include <cstdint>
#include <string>

namespace muster::bench {

/// How quiet it was while something was measured.
struct Noise {
  bool noisy = false;
  std::string why;               ///< for people; empty if quiet
  double involuntary_per_s = 0;  ///< involuntary switches a participant and second
  bool shares_known = false;     ///< whether /proc/stat told the following
  double steal_share = 0;        ///< of the CPUs' time, taken by the hypervisor
  double others_share = 0;       ///< of the CPUs' time, spent by other programs
};

/// What happened on the machine while something ran; differences and sums.
struct Activity {
  std::int64_t wall_ns = 0;
  std::int64_t participant_ns = 0;  ///< wall time times participants
  std::int64_t busy_ns = 0;
  std::int64_t steal_ns = 0;
  std::int64_t team_cpu_ns = 0;
  std::uint64_t involuntary = 0;
  bool oversubscribed = false;  ///< then switches are the rule, and no noise
  bool known = true;

  void add(const Activity& other) {
    wall_ns += other.wall_ns;
    busy_ns += other.busy_ns;
    steal_ns += other.steal_ns;
    team_cpu_ns += other.team_cpu_ns;
    known = known && other.known;
    if (other.oversubscribed) return;
    participant_ns += other.participant_ns;
    involuntary += other.involuntary;
  }
};

/// The verdict on what happened on so many CPUs.
Noise judge(const Activity& activity, unsigned cpus);

}  // namespace muster::bench
