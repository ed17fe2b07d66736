// SPDX-License-Identifier: BSD-3-Clause
#include "machine/hardware.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

namespace muster {
namespace {

/// Sleeps with a progress hook are short: the program's other messages wait for it. The wake-ups
/// take 5 % of a CPU of a virtual machine.
constexpr std::int64_t slice_with_progress_ns = 500'000;
/// Where all share PUs, a wait is over after a yield or two: two looks at the clock would be a
/// thirtieth of a context switch each.
constexpr unsigned yields_per_clock = 4;

}  // namespace

Hardware::Hardware(Domain& domain, unsigned rank, const WaitPolicy& policy, bool shared,
                   bool asks) noexcept
    : domain_(&domain), rank_(rank), lot_(shared, asks) {
  set_policy(policy);
}

void Hardware::set_policy(const WaitPolicy& policy) noexcept {
  patience_ = Patience(policy);
  fast_polls_ = patience_.spins() ? int{polls_per_clock} : 1;
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

Hardware::Wait::Wait(Hardware& port, Awaited awaited) noexcept
    : port_(port), awaited_(awaited), spins_(port.patience_.spins()) {
  if (spins_ || awaited == Awaited::other_pus || port.policy().yield_ns == 0) return;
  const bool suspects = port.patience_.suspects();
  if (port.patience_.times_yields()) begin(now_ns());
  spins_ = began_ && port.patience_.is_spinning();
  const bool was_banned = port.domain_->yield_ban.load(std::memory_order_relaxed) != 0;
  const bool may_yield = !began_ || port.patience_.may_yield();
  if (!spins_ && !was_banned && !suspects && may_yield) yields_unseen_ = yields_per_clock;
}

Hardware::Wait::~Wait() {
  Patience& patience = port_.patience_;
  if (began_) {
    patience.end(slept_ || yields_ > 0 ? now_ns() : patience.last_ns(), yields_);
  } else if (spins_) {
    patience.ended_soon();
  }
  port_.fast_polls_ = patience.spins() ? int{polls_per_clock} : 1;
  std::atomic_ref(port_.stay_).store(patience.stay(), std::memory_order_relaxed);
  if (slept_) std::atomic_ref(port_.slept_).store(port_.slept_ + 1, std::memory_order_relaxed);
}

void Hardware::Wait::begin(std::int64_t now) noexcept {
  began_ = true;
  port_.patience_.begin(now, awaited_ == Awaited::other_pus);
}

void Hardware::Wait::yield() noexcept {
  ++yields_;
  sched_yield();
}

bool Hardware::Wait::is_late(std::int64_t late_ns) const noexcept {
  if (late_ns < 0) return false;
  const Hooks& hooks = port_.hooks_;
  return late_ns >= leaving_ns_max || hooks.all_came == nullptr || !hooks.all_came(hooks.context);
}

Hardware::Next Hardware::Wait::step() noexcept {
  Domain& domain = *port_.domain_;
  Patience& patience = port_.patience_;
  if (domain.broken.load(std::memory_order_relaxed) != 0) return Next::give_up;
  const bool busy = port_.hooks_.progress != nullptr && port_.hooks_.progress(port_.hooks_.context);
  if (yields_unseen_ > 0 && port_.deadline_ns_ == WaitPolicy::forever) {
    --yields_unseen_;
    yield();
    return Next::look;
  }
  const std::int64_t now = now_ns();
  if (!began_) begin(now);
  const std::int64_t late_ns = now - port_.deadline_ns_;
  if (is_late(late_ns)) {
    port_.break_domain({Status::timeout, port_.rank_});
    return Next::give_up;
  }
  if (port_.hooks_.inspect != nullptr) {
    if (const Word why =
            port_.hooks_.inspect(port_.hooks_.context, now - patience.waited_ns(now), now);
        why != 0) {
      port_.break_domain(Breakage::decode(why));
      return Next::give_up;
    }
  }
  const YieldBan ban(domain.yield_ban.load(std::memory_order_relaxed));
  const unsigned yields = std::exchange(yields_, 0);
  Patience::Next next = patience.next(now, yields, ban.holds(now));
  if (next == Patience::Next::ban_yields) {
    domain.yield_ban.store(YieldBan::from(now).word(), std::memory_order_relaxed);
    next = Patience::Next::sleep;
  } else if (ban.word() != 0 && !ban.holds(now) && yields > 0 && !patience.suspects()) {
    Word over = ban.word();  // yields have paid since
    domain.yield_ban.compare_exchange_strong(over, 0, std::memory_order_relaxed);
  }
  if (busy && next == Patience::Next::sleep) {
    next = port_.policy().yield_ns > 0 ? Patience::Next::yield : Patience::Next::spin;
  }
  spins_ = next == Patience::Next::spin;
  if (spins_) return Next::look;
  if (next == Patience::Next::yield) {
    yields_unseen_ = patience.suspects() ? 0 : yields_per_clock - 1;
    yield();
    return Next::look;
  }
  slept_ = true;
  std::int64_t slice = port_.lot_.longest_slice_ns();
  if (port_.hooks_.progress != nullptr) slice = std::min(slice, slice_with_progress_ns);
  if (late_ns < 0) slice = std::min(slice, -late_ns);
  port_.lot_.set_slice(slice);
  return Next::sleep;
}

}  // namespace muster
