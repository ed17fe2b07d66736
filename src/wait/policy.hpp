// SPDX-License-Identifier: BSD-3-Clause
// How a participant may wait: spin for a budget of time, then yield, then sleep. Time, not
// iterations: `pause` takes about 140 cycles on some x86 and `yield` about one on aarch64.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

struct WaitPolicy {
  static constexpr std::int64_t forever = INT64_MAX;
  /// What a sleep and a wake-up take: 5 to 50 us where pthread_barrier was measured.
  static constexpr std::int64_t sleep_costs_ns = 50'000;

  std::int64_t spin_ns = 0;   ///< poll without giving up the PU for this long, at most
  std::int64_t yield_ns = 0;  ///< then poll and sched_yield for this long; then sleep on a futex
  /// How it was asked for or chosen, one of by_name()'s; for `explain`.
  std::string_view name;
  /// The budgets are what it may come to at most: see wait/patience.hpp.
  bool learns = false;
  /// Of the participants, how many share a PU.
  unsigned sharers = 1;

  /// Never gives up the PU: only for participants that own theirs.
  static constexpr WaitPolicy spin() { return {forever, 0, "spin"}; }
  // Spinning may take as long as four sleeps, yielding as long as sixteen to twenty. With a quarter
  // of these budgets 4 and 8 participants beside another session's busy loops take 0.85 of the
  // time, but waits of 50 to 200 us end in sleeps. With four times as much they take 1.3 of it.
  // And where the last one is 2 ms late the others then burn all of their CPUs' time, not 5 %.
  /// Spins long enough to hide a fast barrier's latency and a hiccup, then yields, then sleeps.
  static constexpr WaitPolicy dedicated() { return {200'000, 800'000, "spin-yield-sleep"}; }
  /// The same, but never sleeps.
  static constexpr WaitPolicy attentive() { return {200'000, forever, "spin-yield"}; }
  /// Gives up the PU at once, since whoever is awaited may need it; sleeps when that takes long.
  static constexpr WaitPolicy oversubscribed() { return {0, 1'000'000, "yield-sleep"}; }
  /// Sleeps at once: for participants that wait long and rarely.
  static constexpr WaitPolicy sleep() { return {0, 0, "sleep"}; }
  /// Never sleeps.
  static constexpr WaitPolicy yield() { return {0, forever, "yield"}; }

  /// What `auto` is. With a PU each it spins at first, then yields for as long, then sleeps; it
  /// yields for ever where it has something else to look after (`attends`: an MPI's progress).
  /// Where participants share PUs it yields at first, then sleeps.
  static WaitPolicy learning(unsigned participants, unsigned usable_cpus, bool attends);

  /// By name: "auto", which is learning(), "spin", "yield", "sleep", "spin-yield",
  /// "spin-yield-sleep" or "yield-sleep". Throws Error(unknown_name), listing the names.
  static WaitPolicy by_name(std::string_view name, unsigned participants, unsigned usable_cpus,
                            bool attends = false);

  friend bool operator==(const WaitPolicy&, const WaitPolicy&) = default;
};

}  // namespace muster
