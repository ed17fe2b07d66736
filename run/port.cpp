// SPDX-License-Identifier: BSD-3-Clause
#include "run/port.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <cerrno>

namespace muster::run {

bool Port::park(Cell& cell, Word seen) {
  if (until_ != nullptr && until_->tv_sec < 0) return false;
  count(number_, RUN_SLEPT);
  const int errno_before = errno;
  const int clock = clock_ == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0;
  const long slept = syscall(SYS_futex, &cell, FUTEX_WAIT_BITSET_PRIVATE | clock, seen, until_,
                             nullptr, FUTEX_BITSET_MATCH_ANY);
  const bool in_time = slept == 0 || errno != ETIMEDOUT;
  errno = errno_before;
  return in_time;
}

void Port::unpark(Cell& cell) {
  const int errno_before = errno;
  syscall(SYS_futex, &cell, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  errno = errno_before;
}

std::int64_t Port::clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace muster::run
