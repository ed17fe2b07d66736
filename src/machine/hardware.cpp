// SPDX-License-Identifier: BSD-3-Clause
#include "machine/hardware.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "machine/made_once.hpp"

namespace muster {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

/// Waiting for participants on other PUs costs those on this PU nothing until they are released:
/// worth a spin of the time that a few dozen context switches take there.
constexpr std::int64_t spin_for_other_pus_ns = 200'000;
constexpr std::int64_t inspection_interval_ns = 1'000'000;
/// With a progress hook to serve, sleeps are short.
constexpr std::int64_t slice_with_progress_ns = 500'000;
/// Polls before the clock is read for the first time: a few microseconds.
constexpr int fast_polls_dedicated = 128;
/// Where all share PUs, a wait is over after a yield or two: two looks at the clock would be a
/// thirtieth of a context switch each.
constexpr unsigned yields_per_clock = 4;

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  return a > WaitPolicy::forever - b ? WaitPolicy::forever : a + b;
}

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

Hardware::Hardware(Domain& domain, unsigned rank, const WaitPolicy& policy, bool shared) noexcept
    : domain_(&domain), rank_(rank), lot_(shared) {
  set_policy(policy);
}

void Hardware::set_policy(const WaitPolicy& policy) noexcept {
  policy_ = policy;
  fast_polls_ = policy.spin_ns > 0 ? fast_polls_dedicated : 1;
}

void Hardware::break_domain(Breakage why) noexcept {
  PlainAtoms atoms;
  break_for_all(atoms, domain_->broken, why.encode());
}

bool Hardware::complete() noexcept {
  if (hooks_.completion(hooks_.context)) return true;
  break_domain({Status::broken, rank_});
  return false;
}

Hardware::Patience::Patience(Hardware& port, Awaited awaited) noexcept
    : port_(port), spin_ns_(port.policy_.spin_ns) {
  if (awaited == Awaited::other_pus && port.policy_.yield_ns > 0) {
    spin_ns_ = std::max(spin_ns_, spin_for_other_pus_ns);
  }
  spinning_ = spin_ns_ > 0;
  if (!spinning_ && port.policy_.yield_ns > 0) yields_before_clock_ = yields_per_clock;
}

Hardware::Next Hardware::Patience::step() noexcept {
  if (port_.domain_->broken.load(std::memory_order_relaxed) != 0) return Next::give_up;
  const bool busy = port_.hooks_.progress != nullptr && port_.hooks_.progress(port_.hooks_.context);
  if (yields_before_clock_ > 0 && port_.deadline_ns_ == WaitPolicy::forever) {
    --yields_before_clock_;
    sched_yield();
    return Next::look;
  }
  const std::int64_t now = now_ns();
  if (start_ns_ == 0) {
    start_ns_ = now;
    next_inspection_ns_ = saturating_add(now, inspection_interval_ns);
  }
  const std::int64_t waited = now - start_ns_;
  if (now >= port_.deadline_ns_) {
    port_.break_domain({Status::timeout, port_.rank_});
    return Next::give_up;
  }
  if (port_.hooks_.inspect != nullptr && now >= next_inspection_ns_) {
    next_inspection_ns_ = now + inspection_interval_ns;
    if (const Word why = port_.hooks_.inspect(port_.hooks_.context, waited); why != 0) {
      port_.break_domain(Breakage::decode(why));
      return Next::give_up;
    }
  }
  if (waited < spin_ns_) return Next::look;
  spinning_ = false;
  if (busy && port_.policy_.yield_ns == 0) return Next::look;
  if (busy || waited < saturating_add(spin_ns_, port_.policy_.yield_ns)) {
    yields_before_clock_ = yields_per_clock;
    sched_yield();
    return Next::look;
  }
  std::int64_t slice = port_.lot_.longest_slice_ns();
  if (port_.hooks_.progress != nullptr) slice = std::min(slice, slice_with_progress_ns);
  if (port_.deadline_ns_ != WaitPolicy::forever) slice = std::min(slice, port_.deadline_ns_ - now);
  port_.lot_.set_slice(slice);
  return Next::sleep;
}

}  // namespace muster
