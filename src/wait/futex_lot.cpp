// SPDX-License-Identifier: BSD-3-Clause
#include "wait/futex_lot.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

#include "machine/made_once.hpp"

namespace muster {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

HeavyFence register_heavy_fence(bool shared) noexcept {
  static constinit MadeOnce<bool> own;
  static constinit MadeOnce<bool> all;
  if (shared) {
    const bool has = all.get([] { return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED); });
    return has ? HeavyFence::all_processes : HeavyFence::none;
  }
  const bool has = own.get([] { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); });
  return has ? HeavyFence::own_process : HeavyFence::none;
}

std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * ns_per_s + now.tv_nsec;
}

// Out of line: it is for those who sleep and wake. ThreadSanitizer knows no fences, and need not
// know this one: it orders relaxed accesses alone.
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif
void FutexLot::full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }

void FutexLot::heavy_fence() const noexcept {
  switch (fence_) {
    case HeavyFence::own_process:
      membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
      break;
    case HeavyFence::all_processes:
      membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
      break;
    case HeavyFence::none:
      break;
  }
}

void FutexLot::park(const Atom& atom, Word seen) const noexcept {
  const timespec slice{slice_ns_ / ns_per_s, slice_ns_ % ns_per_s};
  // EAGAIN (the word changed), EINTR and ETIMEDOUT all mean: look again.
  syscall(SYS_futex, &atom, shared_ ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, seen, &slice, nullptr, 0);
}

void FutexLot::unpark_all(const Atom& atom) const noexcept { unpark(atom, INT_MAX); }
void FutexLot::unpark_one(const Atom& atom) const noexcept { unpark(atom, 1); }

void FutexLot::unpark(const Atom& atom, int most) const noexcept {
  syscall(SYS_futex, &atom, shared_ ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
}

}  // namespace muster
