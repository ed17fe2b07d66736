// SPDX-License-Identifier: BSD-3-Clause
// What locks tell hardware beside their accesses. Machines that have no use for it do without.
#pragma once

#include <cstdint>

#include "machine/machine.hpp"

namespace muster::locks {

/// Waits a little, twice as long each time, up to a bound. The checked machine has no time to lose
/// and does nothing.
class Backoff {
 public:
  template <class M>
  void wait(M& m) {
    if constexpr (requires { m.linger(turns_); }) {
      m.linger(turns_);
      if (turns_ < turns_max) turns_ *= 2;
    }
  }

 private:
  static constexpr unsigned turns_max = 256;
  unsigned turns_ = 4;
};

/// How long who has a lock goes on with others' requests: its own next section waits meanwhile, and
/// whoever wants the lock itself. For so many sections, then for that time; the checked machine has
/// no clock. For one pass where threads share CPUs: whose request is executed needs one to post the
/// next.
class Visit {
 public:
  static constexpr std::int64_t usual_ns = 1'000'000;

  explicit Visit(std::int64_t length_ns) : length_ns_(length_ns) {}
  template <class M>
  bool is_over(M& m, unsigned executed) {
    if constexpr (requires { m.is_crowded(); }) {
      if (executed != 0 && m.is_crowded()) return true;
    }
    if (executed < sections) return false;
    if constexpr (requires { m.time_ns(); }) {
      const std::int64_t time_ns = m.time_ns();
      if (until_ns_ == 0) until_ns_ = time_ns + length_ns_;
      return time_ns >= until_ns_;
    } else {
      return true;
    }
  }

 private:
  static constexpr unsigned sections = 64;
  std::int64_t length_ns_;
  std::int64_t until_ns_ = 0;
};

/// A store to what nobody awaits: hardware need not look whether to wake somebody.
template <Machine M>
void store_unawaited(M& m, typename M::Cell& cell, Word word, Site site = Site::here()) {
  if constexpr (requires { m.store_unawaited(cell, word); }) {
    m.store_unawaited(cell, word);
  } else {
    m.store(cell, word, relaxed, site);
  }
}

/// Likewise.
template <Machine M, Order O>
Word exchange_unawaited(M& m, typename M::Cell& cell, Word word, OrderTag<O> order,
                        Site site = Site::here()) {
  if constexpr (requires { m.exchange_unawaited(cell, word, order); }) {
    return m.exchange_unawaited(cell, word, order);
  } else {
    return m.exchange(cell, word, order, site);
  }
}

/// A cell that is 1 while somebody has a lock. True if that is the caller now. Who waits for it
/// sleeps elsewhere, if at all: hardware need not look whether to wake somebody. No exchange: with
/// LL/SC the load finds the lock taken, where an exchange waits for its turn and finds it free.
template <Machine M>
bool take_held(M& m, typename M::Cell& held, Site site = Site::here()) {
  if constexpr (requires { m.take(held); }) {
    return m.take(held);
  } else {
    Word free = 0;
    return m.compare_exchange(held, free, 1, acquire, site);  // pairs with give_held's store
  }
}
template <Machine M>
void give_held(M& m, typename M::Cell& held, Site site = Site::here()) {
  if constexpr (requires { m.give(held); }) {
    m.give(held);
  } else {
    m.store(held, 0, release, site);  // pairs with take_held
  }
}

}  // namespace muster::locks
