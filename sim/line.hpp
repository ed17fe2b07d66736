// SPDX-License-Identifier: BSD-3-Clause
// A cache line with one word on it: its value, its coherence state, and who waits for it to change.
// State changes when a request is *served*, which puts it into the line's order; what cores see
// changes when it is *done*, a latency later.
#pragma once

#include <cstdint>

#include "machine/machine.hpp"
#include "sim/geometry.hpp"
#include "sim/time.hpp"

namespace muster::sim {

struct Line;

/// A participant's place among those who wait for a line to change; a polled set has one per cell.
struct Waiter {
  std::uint32_t participant = 0;
  Line* line = nullptr;  ///< null: not waiting
  Waiter* next = nullptr;
  Waiter* previous = nullptr;
};

inline constexpr std::uint32_t nobody = ~0U;

struct Line {
  DieSet holders = 0;  ///< dies with a copy, once everything served is done
  DieSet sources = 0;  ///< those of them that hand out copies
  Word value = 0;
  std::uint32_t index = 0;        ///< in the engine's per-line tables
  std::uint32_t owner = nobody;   ///< who alone holds it once everything served is done
  std::uint32_t writer = nobody;  ///< who committed last
  Time free_at = 0;               ///< its order: no request is served before
  Time committed_at = -1;         ///< of `value`
  Waiter* waiters = nullptr;
  std::uint16_t home = 0;  ///< the die whose memory it is in

  void watch(Waiter& waiter) {
    waiter.line = this;
    waiter.previous = nullptr;
    waiter.next = waiters;
    if (waiters != nullptr) waiters->previous = &waiter;
    waiters = &waiter;
  }

  static void unwatch(Waiter& waiter) {
    if (waiter.line == nullptr) return;
    if (waiter.next != nullptr) waiter.next->previous = waiter.previous;
    (waiter.previous != nullptr ? waiter.previous->next : waiter.line->waiters) = waiter.next;
    waiter.line = nullptr;
  }
};

}  // namespace muster::sim
