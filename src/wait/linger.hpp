// SPDX-License-Identifier: BSD-3-Clause
// Waiting for what another thread is just about to do, where nobody is told.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "wait/relax.hpp"

namespace muster {

/// Between two looks; `looks` is how many there were. Keeps errno, and is no cancellation point.
inline void linger(unsigned looks) noexcept {
  if (looks < 64) return relax();
  const int errno_before = errno;
  constexpr timespec nap{0, 50'000};  // whoever is awaited may need this CPU, and be weaker
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, nullptr);
  errno = errno_before;
}

}  // namespace muster
