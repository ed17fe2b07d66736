// SPDX-License-Identifier: BSD-3-Clause
// How long a waiter stays awake, and what it does meanwhile: a pure function of what it has seen in
// its own waits. Times are told to it; it knows no clock, thread or cell.
//
// Staying awake pays if the wait ends meanwhile. Each wait that is slept through halves the
// budgets, one that ends before restores them. How long a wait lasted tells less: who is awaited
// may need the very PU that the waiter keeps. Where budgets are short, now and then a wait gets
// them whole.
//
// Yielding: a yield is worth a sleep and a wake-up (WaitPolicy::sleep_costs_ns). Among participants
// that wait it costs less. A stranger keeps the PU for a whole time slice: what yields cost beyond
// their worth adds up, what they saved is subtracted, and beyond some lost slices yields are banned
// for the whole barrier. A ban ends by itself, the next one, if it follows soon, is longer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "machine/machine.hpp"
#include "wait/policy.hpp"

namespace muster {

/// Until when yields are banned: one word that all participants share, 0 at first. Its time is in
/// units of 2^20 ns, and wraps.
class YieldBan {
 public:
  explicit constexpr YieldBan(Word word) noexcept : word_(word) {}
  constexpr Word word() const noexcept { return word_; }

  constexpr bool holds(std::int64_t now_ns) const noexcept { return left_ns(now_ns) > 0; }
  /// How long it holds still; 0: it doesn't.
  constexpr std::int64_t left_ns(std::int64_t now_ns) const noexcept {
    const Word left = (until() - ticks(now_ns)) & tick_mask;
    return left <= longest ? std::int64_t{left} << 20 : 0;
  }
  /// The next one, from now on.
  constexpr YieldBan next(std::int64_t now_ns) const noexcept {
    const Word since = (ticks(now_ns) - until()) & tick_mask;
    const Word before = word_ & step_mask;
    const Word step = since < (shortest << before) ? std::min(before + 1, step_mask) : 0;
    return YieldBan((ticks(now_ns) + (shortest << step)) << step_bits | step);
  }

 private:
  static constexpr unsigned step_bits = 2;
  static constexpr Word step_mask = 3;
  static constexpr Word tick_mask = ~Word{0} >> step_bits;
  /// A probe costs a slice or two of 3 to 4 ms: at the longest ban a thirtieth of the time.
  static constexpr Word shortest = 20;
  static constexpr Word longest = shortest << step_mask;

  static constexpr Word ticks(std::int64_t now_ns) noexcept {
    return static_cast<Word>(now_ns >> 20) & tick_mask;
  }
  constexpr Word until() const noexcept { return word_ >> step_bits; }

  Word word_;
};

class Patience {
 public:
  enum class Next : std::uint8_t {
    spin,
    yield,
    sleep,
    ban_yields,  ///< for all, and sleep
  };

  explicit constexpr Patience(const WaitPolicy& policy = {}) noexcept : policy_(policy) {}
  const WaitPolicy& policy() const noexcept { return policy_; }

  /// How long the next wait stays awake at most: the whole budgets, less, or not at all.
  enum class Stay : std::uint8_t { whole, shorter, none };
  constexpr Stay stay() const noexcept {
    return doubts_ == 0 ? Stay::whole : doubts_ < doubts_max ? Stay::shorter : Stay::none;
  }
  /// Whether a wait begins with polls that nobody times.
  constexpr bool spins() const noexcept { return policy_.spin_ns > 0 && stay() != Stay::none; }
  /// Whether yields have lately cost more than they are worth.
  constexpr bool suspects() const noexcept { return lost_ns_ > 0; }
  /// Whether a wait's first yields are to be timed. A sample, since two looks at the clock are a
  /// twentieth of what a switch to another participant and back takes; all, where it suspects.
  constexpr bool times_yields() noexcept {
    return policy_.learns && (suspects() || waits_++ % 8 == 0);
  }

  /// A wait begins. `others_run`: those awaited are on other PUs, so that yields do not help them,
  /// and cost those on this PU nothing.
  constexpr void begin(std::int64_t now_ns, bool others_run) noexcept {
    start_ns_ = last_ns_ = now_ns;
    halvings_ = doubts_;
    if (doubts_ > 0 && now_ns >= next_probe_ns_) {
      next_probe_ns_ = now_ns + between_probes_ns;
      halvings_ = 0;
    }
    spin_until_ns_ = shortened(policy_.spin_ns);
    if (others_run && policy_.yield_ns > 0) {
      spin_until_ns_ = std::max(spin_until_ns_, shortened(WaitPolicy::dedicated().spin_ns));
    }
  }
  /// What to do next, after so many yields since it was last asked. `banned`: YieldBan::holds().
  constexpr Next next(std::int64_t now_ns, unsigned yields, bool banned) noexcept {
    const std::int64_t waited_ns = this->waited_ns(now_ns);
    count_yields(now_ns, yields);
    if (policy_.learns && (banned || lost_ns_ > bearable_ns)) {
      lost_ns_ = bearable_ns - slice_ns;  // afterwards one lost slice is enough
      if (!banned) return Next::ban_yields;
      return waited_ns < shortened(policy_.spin_ns) ? Next::spin : Next::sleep;
    }
    if (waited_ns < spin_until_ns_) return Next::spin;
    const std::int64_t yields_ns = shortened(policy_.yield_ns);
    return yields_ns > WaitPolicy::forever - spin_until_ns_ ||
                   waited_ns < spin_until_ns_ + yields_ns
               ? Next::yield
               : Next::sleep;
  }
  /// The wait is over, after so many yields since next() was last asked.
  constexpr void end(std::int64_t now_ns, unsigned yields, bool slept) noexcept {
    if (!policy_.learns) return;
    count_yields(now_ns, yields);
    doubts_ = slept ? std::min(doubts_ + 1, doubts_max) : 0;
  }
  /// When it was last asked.
  constexpr std::int64_t last_ns() const noexcept { return last_ns_; }
  constexpr std::int64_t waited_ns(std::int64_t now_ns) const noexcept {
    return now_ns - start_ns_;
  }

 private:
  /// Then they are nothing: before, a sixty-fourth, shorter than the polls that nobody times.
  static constexpr unsigned doubts_max = 7;
  /// A probe costs 0.2 ms, or 1 ms where it yields.
  static constexpr std::int64_t between_probes_ns = 20'000'000;
  /// Less than any kernel's time slice, more than what an interrupt takes.
  static constexpr std::int64_t slice_ns = 1'000'000;
  /// Three long yields in a row, but not one however long: everybody loses the PU at times.
  static constexpr std::int64_t bearable_ns = 5 * slice_ns;

  constexpr std::int64_t shortened(std::int64_t budget_ns) const noexcept {
    if (budget_ns == WaitPolicy::forever) return budget_ns;
    return halvings_ < doubts_max ? budget_ns >> halvings_ : 0;
  }

  constexpr void count_yields(std::int64_t now_ns, unsigned yields) noexcept {
    const std::int64_t took_ns = std::min(now_ns - last_ns_, 2 * slice_ns);
    const std::int64_t worth_ns = yields * policy_.sharers * WaitPolicy::sleep_costs_ns;
    if (yields > 0) lost_ns_ = std::max<std::int64_t>(0, lost_ns_ + took_ns - worth_ns);
    last_ns_ = now_ns;
  }

  WaitPolicy policy_;
  std::int64_t start_ns_ = 0;
  std::int64_t last_ns_ = 0;
  std::int64_t spin_until_ns_ = 0;
  std::int64_t lost_ns_ = 0;  ///< by yields, beyond what sleeps would have cost
  unsigned waits_ = 0;        ///< that began with yields
  unsigned doubts_ = 0;
  unsigned halvings_ = 0;  ///< in this wait
  std::int64_t next_probe_ns_ = 0;
};

}  // namespace muster
