// SPDX-License-Identifier: BSD-3-Clause
// What a lock's client does while it waits for its answer or its turn: a pure function of what it
// has seen. It knows no clock, thread or cell; lock/ask.hpp does what it says, on hardware and in
// the model, and looks after each step whether the wait is over.
//
// It polls for a while before it says that it waits: a holder that is told ends its run of
// sections. If another one has said so, that is enough. Then the holder comes at once, if it runs
// and its section is short; else the client sleeps, and asks again afterwards.
#pragma once

#include <cstdint>

#include "wait/policy.hpp"

namespace muster {

class Asking {
 public:
  enum class Next : std::uint8_t {
    poll,   ///< for poll_ns
    yield,  ///< the PU
    ask,    ///< say that it waits, then poll
    sleep,  ///< until woken, or for sleep_ns
  };

  /// Between two looks at the lock. In the model four clients of POWER9 do 0.41 with a quarter of
  /// it, eight of an EPYC 0.37 with four times as much.
  static constexpr std::int64_t poll_ns = 2'000;
  /// So many polls before it asks. Four clients of POWER9 do 0.61 with one, 16 of an EPYC 0.96 with
  /// 16.
  static constexpr unsigned patience = 4;
  /// So many races for the lock lost, and it asks at once. In the model two clients of a Kunpeng
  /// wait 5 ms at worst without, 0.2 with it. With a quarter of it four do 0.95.
  static constexpr unsigned races = 32;
  /// In a crowd, before a sleep. Most to fewest sections of 64 threads on two CPUs: 34 without, 8
  /// to 11 with 4 or 16.
  static constexpr unsigned yields = 16;
  /// Where each thread has a CPU, before a sleep: for as long as a sleep and a wake-up take, which
  /// also interrupt the other CPUs and keep the lock's holder. In the model 127 clients of an EPYC
  /// wait 4 us each, 15 with random access.
  static constexpr unsigned polls_before_sleep = WaitPolicy::sleep_costs_ns / poll_ns;
  /// A sleep that nobody ends. With 1 ms 64 threads behind a long section would wake 64,000 times a
  /// second.
  static constexpr std::int64_t sleep_ns = 8'000'000;

  /// `crowded`: more threads than PUs use locks, so that the holder may need this one's. `asked`:
  /// asked() after the client's last wait. Who asks is let in, so it yields twice, and another one
  /// asks first: without these yields the most to the fewest sections of 64 threads is 7,000.
  /// `lost`: races for the lock, since it came. `limited`: yields are naps (delegation/port.cpp),
  /// or others need this PU, so that it sleeps soon.
  constexpr Asking(bool crowded, bool asked, unsigned lost, bool limited = false) noexcept
      : polls_(crowded ? 1 : patience),
        yields_(crowded ? (asked ? 2 : 1) : 0),
        yields_before_sleep_(crowded && !limited ? yields : 0),
        polls_before_sleep_(crowded || limited ? 0 : polls_before_sleep) {
    if (lost >= races) polls_ = 0;
  }

  /// `said`: somebody says that it waits.
  constexpr Next next(bool said) noexcept {
    if (polls_ > 0) return --polls_, Next::poll;
    if (yields_ > 0) return --yields_, Next::yield;
    was_told_ = !was_told_;
    if (!was_told_) return polls_ = 1, Next::sleep;
    yields_ = yields_before_sleep_;
    polls_ = polls_before_sleep_;
    if (said) return next(said);
    asked_ = true;
    return Next::ask;
  }
  constexpr bool asked() const noexcept { return asked_; }

 private:
  unsigned polls_;
  unsigned yields_;
  unsigned yields_before_sleep_;
  unsigned polls_before_sleep_;
  bool was_told_ = false;  ///< the holder, since the client began or slept
  bool asked_ = false;
};

}  // namespace muster
