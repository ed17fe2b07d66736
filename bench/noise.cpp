// SPDX-License-Identifier: BSD-3-Clause
#include "bench/noise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::bench {
namespace {

// What counts as noise. A preemption costs a barrier some microseconds to milliseconds.
constexpr double kInvoluntaryPerSMax = 50;
constexpr double kStealShareMax = 0.02;
constexpr double kOthersShareMax = 0.10;
/// The kernel counts a sched_yield that switches as involuntary, too: without others, or a
/// hypervisor, that have as much of the CPUs, nobody was preempted.
constexpr double kPreemptingShareMin = 0.02;
/// /proc/stat counts in ticks of 10 ms: fewer than this prove nothing.
constexpr std::int64_t kEvidence_ns = 30'000'000;

}  // namespace

Noise judge(const Activity& a, unsigned cpus) {
  Noise noise;
  const auto add = [&](std::string why) {
    noise.noisy = true;
    noise.why += (noise.why.empty() ? "" : "; ") + std::move(why);
  };
  noise.shares_known = a.known && a.wall_ns != 0;
  const double total_ns = static_cast<double>(a.wall_ns) * cpus;
  const std::int64_t others_ns = std::max<std::int64_t>(0, a.busy_ns - a.team_cpu_ns);
  if (noise.shares_known) {
    noise.steal_share = static_cast<double>(a.steal_ns) / total_ns;
    noise.others_share = static_cast<double>(others_ns) / total_ns;
  }
  if (a.participant_ns > 0) {
    noise.involuntary_per_s =
        static_cast<double>(a.involuntary) * 1e9 / static_cast<double>(a.participant_ns);
    const bool preempted = !noise.shares_known || noise.others_share > kPreemptingShareMin ||
                           noise.steal_share > kPreemptingShareMin;
    if (preempted && noise.involuntary_per_s > kInvoluntaryPerSMax && a.involuntary >= 5) {
      add(fmt::format("{:.0f} involuntary switches a participant and second",
                      noise.involuntary_per_s));
    }
  }
  if (noise.steal_share > kStealShareMax && a.steal_ns >= kEvidence_ns) {
    add(fmt::format("{:.0f} % of the CPUs' time stolen by the hypervisor",
                    100 * noise.steal_share));
  }
  if (noise.others_share > kOthersShareMax && others_ns >= kEvidence_ns) {
    add(fmt::format("{:.0f} % of the CPUs' time spent by other programs",
                    100 * noise.others_share));
  }
  return noise;
}

}  // namespace muster::bench
