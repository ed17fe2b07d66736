// SPDX-License-Identifier: BSD-3-Clause
// Sleeping on hardware: the primitives of wait/sleep.hpp on futexes and membarrier(2); the clock.
#pragma once

#include <atomic>
#include <cstdint>

#include "machine/machine.hpp"

namespace muster {

/// How the kernel makes the heavy fence heavy.
enum class HeavyFence : std::uint8_t { none, own_process, all_processes };

/// Registers this process for the asymmetric fence, once; `shared`: the participants are several
/// processes. `none` if the kernel lacks membarrier(2): sleeps are then short, since a wake-up can
/// be lost. Takes the kernel 5 to 20 ms where the process has several threads already, else next
/// to nothing: so whatever sleeps registers when it is made, not when it is first used.
HeavyFence register_heavy_fence(bool shared) noexcept;

/// Monotonic clock, nanoseconds.
std::int64_t now_ns() noexcept;
/// When so much time is over; WaitPolicy::forever, if not before.
inline std::int64_t until_ns(std::int64_t timeout_ns) noexcept {
  const std::int64_t now = now_ns();
  return timeout_ns > INT64_MAX - now ? INT64_MAX : now + timeout_ns;
}

/// Sleeping on hardware: the primitives of wait/sleep.hpp on futexes.
class FutexLot {
 public:
  using Atom = std::atomic<Word>;

  /// `asks`: its sleepers ask the storers for full fences. Not where a storer looks for sleepers
  /// without anybody_sleeps().
  explicit FutexLot(bool shared, bool asks = false) noexcept
      : fence_(register_heavy_fence(shared)), shared_(shared), asks_(asks) {}
  /// Where nobody ever sleeps.
  FutexLot() noexcept : fence_(HeavyFence::none), shared_(false), asks_(false) {}

  static Word add(Atom& atom, Word delta) noexcept {
    return atom.fetch_add(delta, std::memory_order_relaxed);
  }
  static void replace(Atom& atom, Word from, Word to) noexcept {
    atom.compare_exchange_strong(from, to, std::memory_order_relaxed);
  }
  static void swap_in(Atom& atom, Word word) noexcept {
    atom.exchange(word, std::memory_order_acq_rel);
  }
  template <Order O>
  static Word make_odd(Atom& atom, OrderTag<O>) noexcept {
    const auto order = O == Order::relaxed ? std::memory_order_relaxed : std::memory_order_acq_rel;
    return atom.fetch_or(1, order) | 1;
  }
  static void take(Atom& atom, Word from, Word to) noexcept {
    atom.compare_exchange_strong(from, to, std::memory_order_acq_rel, std::memory_order_acquire);
  }
  static void set(Atom& atom, Word word) noexcept { atom.store(word, std::memory_order_relaxed); }
  static Word look(const Atom& atom) noexcept { return atom.load(std::memory_order_acquire); }
  static Word peek(const Atom& atom) noexcept { return atom.load(std::memory_order_relaxed); }
  /// Enough because every sleeper issues the heavy one: the compiler may not move the load over the
  /// store; the core may, unless membarrier stops it.
  static void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
  void heavy_fence() const noexcept;
  static void full_fence() noexcept;
  bool asks_for_fences() const noexcept { return asks_ && fence_ != HeavyFence::none; }
  /// A heavy fence takes as long as some thousand full ones.
  bool tired() noexcept { return ++stores_unseen_ % 1024 == 0; }
  void park(const Atom& atom, Word seen) const noexcept;
  void unpark_all(const Atom& atom) const noexcept;
  void unpark_one(const Atom& atom) const noexcept;

  /// A sleep in one go: everything but the awaited store (deadline, broken barrier, dead
  /// participant) is noticed between. A wake-up and a look take 25 us of a CPU of a virtual
  /// machine, a thousandth of the time.
  static constexpr std::int64_t between_looks_ns = 20'000'000;
  /// Where a wake-up can be lost, that costs no more than this.
  static constexpr std::int64_t slice_without_fence_ns = 1'000'000;
  void set_slice(std::int64_t slice_ns) noexcept { slice_ns_ = slice_ns; }
  std::int64_t longest_slice_ns() const noexcept {
    return fence_ == HeavyFence::none ? slice_without_fence_ns : between_looks_ns;
  }

 private:
  void unpark(const Atom& atom, int most) const noexcept;

  std::int64_t slice_ns_ = slice_without_fence_ns;
  HeavyFence fence_;
  bool shared_;
  bool asks_;
  unsigned stores_unseen_ = 0;  ///< by any sleeper
};

}  // namespace muster
