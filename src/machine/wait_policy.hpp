// SPDX-License-Identifier: BSD-3-Clause
// How a participant waits: spin for a budget of time, then yield, then sleep. Time, not iterations:
// `pause` takes about 140 cycles on some x86 and `yield` about one on aarch64.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

struct WaitPolicy {
  static constexpr std::int64_t forever = INT64_MAX;

  std::int64_t spin_ns = 0;   ///< poll without giving up the PU for this long
  std::int64_t yield_ns = 0;  ///< then poll and sched_yield for this long; then sleep on a futex
  /// How it was asked for or chosen, one of by_name()'s but "auto"; for `explain`.
  std::string_view name;

  /// Never gives up the PU: only for participants that own theirs.
  static constexpr WaitPolicy spin() { return {forever, 0, "spin"}; }
  /// A PU each: spins long enough to hide a fast barrier's latency and a hiccup, then yields, then
  /// sleeps.
  static constexpr WaitPolicy dedicated() { return {200'000, 800'000, "spin-yield-sleep"}; }
  /// A PU each, and something else to look after while waiting (an MPI's progress): never sleeps.
  static constexpr WaitPolicy attentive() { return {200'000, forever, "spin-yield"}; }
  /// More participants than PUs: gives up the PU at once, since whoever is awaited may need it;
  /// sleeps when that takes long.
  static constexpr WaitPolicy oversubscribed() { return {0, 1'000'000, "yield-sleep"}; }
  /// Sleeps at once: for participants that wait long and rarely.
  static constexpr WaitPolicy sleep() { return {0, 0, "sleep"}; }
  /// Never sleeps.
  static constexpr WaitPolicy yield() { return {0, forever, "yield"}; }

  /// By name: "auto", "spin", "yield", "sleep", "spin-yield", "spin-yield-sleep" or
  /// "yield-sleep". "auto" is `oversubscribed` when `participants` exceed `usable_cpus`, else
  /// `dedicated`. Throws Error(unknown_name), listing the names.
  static WaitPolicy by_name(std::string_view name, unsigned participants, unsigned usable_cpus);

  friend bool operator==(const WaitPolicy&, const WaitPolicy&) = default;
};

}  // namespace muster
