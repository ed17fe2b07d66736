// SPDX-License-Identifier: BSD-3-Clause
// Waiting for what another thread is just about to do, where nobody is told.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "wait/policy.hpp"
#include "wait/relax.hpp"

namespace muster {

/// Between two looks; `looks` is how many there were. Keeps errno, and is no cancellation point.
inline void linger(unsigned looks) noexcept {
  constexpr unsigned short_looks = 64;  // 2 us or so: what is just being done takes less
  if (looks < short_looks) return relax();
  const int errno_before = errno;
  // Whoever is awaited may need this CPU, and be weaker. A nap is about as long as the wait so far,
  // up to 16 times what a sleep takes.
  const timespec nap{0, WaitPolicy::sleep_costs_ns << std::min(looks - short_looks, 4U)};
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, nullptr);
  errno = errno_before;
}

}  // namespace muster
