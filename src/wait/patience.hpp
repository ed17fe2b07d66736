// SPDX-License-Identifier: BSD-3-Clause
// How long a waiter stays awake, and what it does meanwhile: a pure function of what it has seen in
// its own waits. Times are told to it; it knows no clock, thread or cell.
//
// Spinning pays if the wait ends meanwhile, and so does yielding. Each has a budget: a wait that
// outlasts it halves it, a wait that ends within restores it. The length of a wait would tell less:
// the awaited one may need the very PU that the waiter spins on. Now and then a wait probes half
// of the whole budget.
//
// A yield is worth a sleep and a wake-up (WaitPolicy::sleep_costs_ns). Another waiting participant
// gives the PU back sooner, a stranger keeps it for a time slice. What yields cost beyond their
// worth is added up, what they save is subtracted. After some lost slices yields are banned for the
// whole barrier. A ban ends by itself.
#pragma once

#include <algorithm>
#include <cstdint>

#include "machine/machine.hpp"
#include "wait/policy.hpp"

namespace muster {

/// Between two probes of what has not paid, in units of 2^20 ns. One of a ban costs a slice or two
/// of 3 to 4 ms: beside busy loops barriers lose no more than by bans of up to 160 ms. One of a
/// budget of 0.2 ms costs a 200th; of 1 ms, all of it yields, a 40th: 64 threads whose last one is
/// 2 ms late burn 16 % of the CPUs' time so, 29 % with probes of all of it. With 5 eight threads
/// beside busy loops take 1.3 times as long, with 80 the same (scatter 0.1).
inline constexpr Word ticks_between_probes = 20;

/// Until when yields are banned: one word that all participants share, 0 at first. Its time is in
/// units of 2^20 ns, and wraps.
class YieldBan {
 public:
  explicit constexpr YieldBan(Word word) noexcept : word_(word) {}
  static constexpr YieldBan from(std::int64_t now_ns) noexcept {
    return YieldBan(std::max<Word>(ticks(now_ns) + ticks_between_probes, 1));
  }
  constexpr Word word() const noexcept { return word_; }

  constexpr bool holds(std::int64_t now_ns) const noexcept { return left_ns(now_ns) > 0; }
  /// For how long yet; 0: it does not hold.
  constexpr std::int64_t left_ns(std::int64_t now_ns) const noexcept {
    if (word_ == 0) return 0;
    const Word left = word_ - ticks(now_ns);
    if (left > ticks_between_probes + 1) return 0;  // not 1 less: another's clock was a tick later
    return std::int64_t{left} << 20;
  }

 private:
  static constexpr Word ticks(std::int64_t now_ns) noexcept {
    return static_cast<Word>(now_ns >> 20);
  }

  Word word_;
};

/// How long a waiter may stay awake in one way: the whole of it, or less, by what it brought.
class Budget {
 public:
  explicit constexpr Budget(std::int64_t most_ns) noexcept : most_ns_(most_ns) {}

  constexpr bool is_whole() const noexcept { return !learns() || doubts_ == 0; }
  constexpr bool is_nothing() const noexcept {
    return most_ns_ == 0 || (learns() && doubts_ == doubts_max);
  }

  /// What a wait gets that begins now.
  constexpr std::int64_t grant(std::int64_t now_ns) noexcept {
    if (is_whole()) return most_ns_;
    const auto tick = static_cast<Word>(now_ns >> 20);
    if (tick - probed_at_ >= ticks_between_probes) {
      probed_at_ = tick;
      return most_ns_ / 2;
    }
    return doubts_ < doubts_max ? most_ns_ >> doubts_ : 0;
  }
  constexpr void was_worth_it() noexcept { doubts_ = 0; }
  constexpr void was_in_vain() noexcept { doubts_ = std::min(doubts_ + 1, doubts_max); }

 private:
  constexpr bool learns() const noexcept { return most_ns_ > 0 && most_ns_ != WaitPolicy::forever; }

  /// Then it is nothing; before, a sixty-fourth: shorter than the polls that nobody times. With
  /// 3 or 14 eight threads beside busy loops take as long.
  static constexpr unsigned doubts_max = 7;

  std::int64_t most_ns_;
  unsigned doubts_ = 0;  ///< waits in a row that it did not end
  Word probed_at_ = 0;   ///< in units of 2^20 ns, as that is
};

class Patience {
 public:
  enum class Next : std::uint8_t {
    spin,
    yield,
    sleep,
    ban_yields,  ///< for all, and sleep
  };

  explicit constexpr Patience(const WaitPolicy& policy = {}) noexcept
      : policy_(policy),
        spin_(policy.spin_ns > 0 || policy.yield_ns == 0 ? policy.spin_ns
                                                         : WaitPolicy::dedicated().spin_ns),
        yield_(policy.yield_ns) {}
  const WaitPolicy& policy() const noexcept { return policy_; }

  /// How long the next wait stays awake at most: the whole budgets, less, or not at all.
  enum class Stay : std::uint8_t { whole, shorter, none };
  constexpr Stay stay() const noexcept {
    const bool spins_whole = policy_.spin_ns == 0 || spin_.is_whole();
    if (spins_whole && yield_.is_whole()) return Stay::whole;
    return !spins() && yield_.is_nothing() ? Stay::none : Stay::shorter;
  }
  /// Whether a wait begins with polls that nobody times.
  constexpr bool spins() const noexcept { return policy_.spin_ns > 0 && !spin_.is_nothing(); }
  /// Whether yields have lately cost more than they are worth.
  constexpr bool suspects() const noexcept { return lost_ns_ > 0; }
  /// Whether a wait's first yields are to be timed. A sample, since two looks at the clock are a
  /// twentieth of what a switch to another participant and back takes; all, where it is in doubt.
  constexpr bool times_yields() noexcept {
    return policy_.learns && (suspects() || !yield_.is_whole() || waits_++ % 8 == 0);
  }

  /// A wait begins. `others_run`: those awaited are on other PUs, so that yields do not help them,
  /// and cost those on this PU nothing.
  constexpr void begin(std::int64_t now_ns, bool others_run) noexcept {
    start_ns_ = last_ns_ = now_ns;
    spin_until_ns_ = others_run || policy_.spin_ns > 0 ? spin_.grant(now_ns) : 0;
    yield_ns_ = yield_.grant(now_ns);
    doing_ = spin_until_ns_ > 0 ? Next::spin : may_yield() ? Next::yield : Next::sleep;
  }
  /// What to do next, after so many yields since it was last asked. `banned`: YieldBan::holds().
  constexpr Next next(std::int64_t now_ns, unsigned yields, bool banned) noexcept {
    const std::int64_t waited_ns = this->waited_ns(now_ns);
    count_yields(now_ns, yields);
    // Where strangers take the PUs, those on other PUs may not run either.
    const bool may_spin = !banned || policy_.spin_ns > 0;
    if (may_spin && waited_ns < spin_until_ns_) return doing_ = Next::spin;
    if (policy_.learns && (banned || lost_ns_ > bearable_ns)) {
      lost_ns_ = bearable_ns - slice_ns;  // afterwards one lost slice is enough
      doing_ = Next::sleep;
      return banned ? Next::sleep : Next::ban_yields;
    }
    const bool yields_on =
        yield_ns_ > WaitPolicy::forever - spin_until_ns_ || waited_ns < spin_until_ns_ + yield_ns_;
    return doing_ = yields_on ? Next::yield : Next::sleep;
  }
  /// The wait is over, after so many yields since next() was last asked.
  constexpr void end(std::int64_t now_ns, unsigned yields) noexcept {
    if (!policy_.learns) return;
    count_yields(now_ns, yields);
    if (doing_ == Next::spin) return ended_soon();
    if (spin_until_ns_ > 0 || policy_.spin_ns > 0) spin_.was_in_vain();
    if (doing_ == Next::yield) yield_.was_worth_it();
    if (doing_ == Next::sleep) yield_.was_in_vain();
  }
  constexpr bool may_yield() const noexcept { return yield_ns_ > 0; }
  /// What it was told last, or is about to be told.
  constexpr bool is_spinning() const noexcept { return doing_ == Next::spin; }
  /// The wait ended while it was spinning.
  constexpr void ended_soon() noexcept { spin_.was_worth_it(); }

  /// When it was last asked.
  constexpr std::int64_t last_ns() const noexcept { return last_ns_; }
  constexpr std::int64_t waited_ns(std::int64_t now_ns) const noexcept {
    return now_ns - start_ns_;
  }

 private:
  /// Less than most kernels' time slices (a shorter one delays a ban), more than an interrupt
  /// takes. Eight threads beside busy loops take 1.4 times as long with a quarter of it, 1.5 with
  /// four times.
  static constexpr std::int64_t slice_ns = 1'000'000;
  /// Three long yields in a row, but not one however long: everybody loses the PU at times.
  static constexpr std::int64_t bearable_ns = 5 * slice_ns;

  constexpr void count_yields(std::int64_t now_ns, unsigned yields) noexcept {
    const std::int64_t worth_ns = yields * policy_.sharers * WaitPolicy::sleep_costs_ns;
    const std::int64_t cost_ns = std::min(now_ns - last_ns_ - worth_ns, 2 * slice_ns);
    if (yields > 0) lost_ns_ = std::max<std::int64_t>(0, lost_ns_ + cost_ns);
    last_ns_ = now_ns;
  }

  WaitPolicy policy_;
  Budget spin_;  ///< with a policy that does not spin: for those on other PUs
  Budget yield_;
  std::int64_t lost_ns_ = 0;  ///< by yields, beyond what sleeps would have cost
  unsigned waits_ = 0;        ///< that began with yields

  // This wait:
  std::int64_t start_ns_ = 0;
  std::int64_t last_ns_ = 0;
  std::int64_t spin_until_ns_ = 0;  ///< after its start
  std::int64_t yield_ns_ = 0;
  Next doing_ = Next::spin;
};

}  // namespace muster
