// SPDX-License-Identifier: BSD-3-Clause
// Waiting for what another thread is just about to do, where nobody is told.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "machine/keep_errno.hpp"
#include "wait/policy.hpp"
#include "wait/relax.hpp"

namespace muster {

/// For less than a second. Keeps errno, and is no cancellation point.
inline void nap_for(std::int64_t time_ns) noexcept {
  const KeepErrno of_caller;
  const timespec time{0, time_ns};
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
}

/// Between two looks, after so many naps. The first takes as long as a sleep and a wake-up, each
/// next one twice as long, up to 16 times; `most_ns` at most.
inline void nap(unsigned naps, std::int64_t most_ns = WaitPolicy::forever) noexcept {
  nap_for(std::min(WaitPolicy::sleep_costs_ns << std::min(naps, 4U), most_ns));
}

/// Between two looks, after so many. Whoever is awaited may need this CPU, and be weaker.
inline void linger(unsigned looks) noexcept {
  constexpr unsigned short_looks = 64;  // 2 us or so: what is just being done takes less
  looks < short_looks ? relax() : nap(looks - short_looks);
}

}  // namespace muster
