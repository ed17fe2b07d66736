// SPDX-License-Identifier: BSD-3-Clause
// The machine of mutexes on hardware: what lock/parking*.hpp ask for, on atomics and futexes.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "machine/hardware.hpp"
#include "machine/keep_errno.hpp"
#include "wait/linger.hpp"
#include "wait/parking.hpp"

namespace muster {

/// `CellsOf`: where a mutex's words and its clients' are; its is_alone() says that there is one CPU
/// only, so that nobody changes anything while we look. A port belongs to one call of one thread.
template <class CellsOf>
class ParkingPort {
 public:
  using Cell = std::atomic<Word>;
  using Cells = CellsOf;

  ParkingPort() = default;
  /// Gives up at that time of that clock; null: never.
  ParkingPort(clockid_t clock, const timespec* until) : clock_(clock), until_(until) {}

  template <Order O>
  Word load(const Cell& cell, OrderTag<O>) {
    return cell.load(std_order(O));
  }
  template <Order O>
  void store(Cell& cell, Word word, OrderTag<O>) {
    cell.store(word, std_order(O));
  }
  template <Order O>
  Word exchange(Cell& cell, Word word, OrderTag<O>) {
    return cell.exchange(word, std_order(O));
  }
  template <Order O>
  bool compare_exchange(Cell& cell, Word& expected, Word desired, OrderTag<O>) {
    return cell.compare_exchange_strong(expected, desired, std_order(O), failure_order(O));
  }

  /// For what another thread is just about to do.
  template <class Pred, Order O>
  bool await(Cell& cell, Pred pred, OrderTag<O>) {
    for (unsigned looks = 0; !pred(cell.load(std_order(O))); ++looks) linger(looks);
    return true;
  }

  bool poll(Cell& cell, auto pred) {
    if (pred(cell.load(std::memory_order_relaxed))) return true;
    if (Cells::is_alone()) return false;
    for (unsigned looks = 0; unsigned pauses = Parking::pauses(looks); ++looks) {
      for (; pauses > 0; --pauses) relax();
      if (pred(cell.load(std::memory_order_relaxed))) return true;
    }
    return false;
  }

  bool is_overdue() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return parking_.is_overdue(std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
  }

  bool park(Cell& cell, Word seen) {
    if (until_ != nullptr && until_->tv_sec < 0) return false;
    const KeepErrno of_caller;
    const int clock = clock_ == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0;
    const long slept = syscall(SYS_futex, &cell, FUTEX_WAIT_BITSET_PRIVATE | clock, seen, until_,
                               nullptr, FUTEX_BITSET_MATCH_ANY);
    return slept == 0 || errno != ETIMEDOUT;
  }
  void unpark(Cell& cell) {
    const KeepErrno of_caller;
    syscall(SYS_futex, &cell, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

 private:
  Parking parking_;
  clockid_t clock_ = CLOCK_MONOTONIC;
  const timespec* until_ = nullptr;
};

}  // namespace muster
