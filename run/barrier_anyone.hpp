// SPDX-License-Identifier: BSD-3-Clause
// Barriers of threads that have no ranks, as pthreads and ggml have them: src/barrier/anyone.hpp in
// memory of somebody else's, and what a wait there takes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "barrier/anyone.hpp"
#include "run/barrier.hpp"
#include "wait/futex_lot.hpp"

namespace muster::run {

/// All zero at first.
struct WithoutRanks {
  Hardware::Cell arrivals;
  Word participants;  ///< its owner's, as the mark
  Word mark;
  Hardware::Cell opened;
  std::atomic<std::int64_t> completed_ns;  ///< the last episode, where it is watched
};

inline bool note_completion(void* barrier) {
  static_cast<WithoutRanks*>(barrier)->completed_ns.store(now_ns(), std::memory_order_relaxed);
  return true;
}

/// By one of its participants; true for the one that came last. What it takes is noted where it is
/// `watched`.
template <bool watched>
bool wait_without_rank(WithoutRanks& its, Word participants, Waits what, Times Member::*times) {
  Member& mine = me();
  mine.serve(participants);
  auto* const cells = reinterpret_cast<std::byte*>(&its);
  constexpr std::size_t apart = offsetof(WithoutRanks, opened);
  const Anyone<Hardware> barrier{{.participants = participants}, {cells, nullptr, apart, 0, apart}};
  auto ticket = barrier.ticket(0);
  // Released by the arrival: who comes after this episode sees it, or that it is over.
  mine.inside.store(&its, std::memory_order_relaxed);
  if constexpr (watched) {
    const std::int64_t came_ns = now_ns();
    mine.port.set_hooks({.completion = note_completion, .context = &its});
    barrier.wait(mine.port, ticket);
    (mine.*times).add(came_ns, its.completed_ns.load(std::memory_order_relaxed), now_ns());
    mine.count(what);
    if (ticket.was_last) add_to(mine.was_last, 1);
  } else {
    barrier.wait(mine.port, ticket);
  }
  mine.inside.store(nullptr, std::memory_order_release);  // pairs with await_left()
  return ticket.was_last;
}

}  // namespace muster::run
