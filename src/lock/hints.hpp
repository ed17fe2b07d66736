// SPDX-License-Identifier: BSD-3-Clause
// How long locks pause, how long they go on, and which clients they look at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lock/shape.hpp"
#include "machine/lock_machine.hpp"
#include "wait/asking.hpp"

namespace muster::locks {

/// Waits a little, twice as long each time, up to a bound.
class Backoff {
 public:
  static constexpr unsigned turns_max = 256;

  void wait(auto& m) {
    m.linger(turns_);
    if (turns_ < turns_max) turns_ *= 2;
    ++waits_;
  }
  unsigned waits() const { return waits_; }

 private:
  unsigned turns_ = 4;
  unsigned waits_ = 0;
};

/// Before a client's first request: executors look below `clients` only.
template <LockMachine M>
void raise_clients(M& m, typename M::Cell& clients, unsigned client) {
  Word seen = m.load(clients, relaxed);
  while (seen < client + 1) {
    if (m.compare_exchange(clients, seen, client + 1, relaxed)) return;
  }
}

/// Executing one request takes less time than the next one's line. So the lines of several come at
/// once: a core has but two or three outstanding by itself. Whose line is fetched while this one's
/// request is executed; it may be the next round's. `count`: nobody's.
Word fetched_ahead(auto& m, Word client, Word count) {
  Word at = client + std::min(Word{8}, count / 4);
  if (at >= count) at -= count;
  const Word end = std::min(count, at + 64);  // of many that have ended no long walk
  const Word next = m.next_client(at, end);
  return next < end ? next : count;
}

/// Who of those that wait for a lock lets others go first: whoever is near the data executes
/// others' sections faster, but whoever is near its last owner would get it. A steward finds out
/// where the data are.
struct StandBack {
  unsigned place = 0;
  enum : Word { nobody, who_is_near, who_is_elsewhere } who = nobody;

  Word word() const { return Word{place} << 2 | who; }
};

/// What stands back before it takes a lock: one request, once.
template <LockMachine M>
class StandingBack {
 public:
  /// `cell`: a StandBack's word, or null. `had_ns`: when the client last let others have the lock,
  /// after many visits; 0: never. It lets them go first, the longer ago the less: else those near
  /// each other win all races.
  explicit StandingBack(typename M::Cell* cell, std::int64_t had_ns = 0)
      : cell_(cell), had_ns_(had_ns) {}
  bool did(M& m) {
    if (std::exchange(done_, true)) return false;
    const std::int64_t turns = is_asked(m) ? Backoff::turns_max : turns_as_others(m);
    if (turns > 0) m.linger(static_cast<unsigned>(turns));
    return turns > 0;
  }
  /// For who executes others' sections, too: it would go on with them.
  bool is_asked(M& m) const {
    const Word word = cell_ == nullptr ? Word{StandBack::nobody} : m.load(*cell_, relaxed);
    if (word == StandBack::nobody) return false;
    return m.is_near(word >> 2) == ((word & 3) == StandBack::who_is_near);
  }

 private:
  /// In the model the busiest of two or four clients has at most 2.7 times as many sections as
  /// another. When that was 2.4, it was 600 with a quarter of it, 2.5 with four times as much, 10
  /// with a quarter of the turns.
  static constexpr std::int64_t span_ns = 4'000'000;
  static constexpr unsigned turns_max = 4 * Backoff::turns_max;

  std::int64_t turns_as_others(M& m) const {
    if (had_ns_ == 0) return 0;
    const std::int64_t left_ns = had_ns_ + span_ns - m.time_ns();
    return left_ns <= 0 ? 0 : turns_max * std::min(left_ns, span_ns) / span_ns;
  }

  typename M::Cell* cell_;
  std::int64_t had_ns_;
  bool done_ = false;
};

/// How fast who has a lock executes others' sections: so many, in so long. Only of long visits,
/// which look at the clock anyway.
struct Pace {
  Count sections;
  Count ns;
};

/// How long who has a lock goes on with others' requests: its own next section waits meanwhile, and
/// whoever wants the lock itself. For so many sections, then for that time. For one pass where
/// threads share CPUs: whose request is executed needs one to post the next.
class Visit {
 public:
  static constexpr std::int64_t usual_ns = 1'000'000;

  Visit(std::int64_t length_ns, Pace& pace) : length_ns_(length_ns), pace_(pace) {}
  bool is_over(auto& m, unsigned executed) {
    if (executed != 0 && m.is_crowded()) return true;
    if (executed < sections) return false;
    const std::int64_t time_ns = m.time_ns();
    const std::int64_t pass_ns = time_ns - std::exchange(time_ns_, time_ns);
    const unsigned pass = executed - std::exchange(executed_, executed);
    if (since_ns_ == 0) {
      since_ns_ = time_ns;
      first_ = executed;
      return false;
    }
    pace_.sections += pass;
    pace_.ns += static_cast<std::uint64_t>(pass_ns);
    // What others wait besides: until they say so; for the sections up to the first look; for three
    // passes before the caller had the lock, and the next one. In the model clients waited 0.996 ms
    // at most; 1.013 without the first of these, and with two passes before. 64 of an EPYC now wait
    // 1.06: who visits had waited 40 us by then.
    const std::int64_t besides_ns =
        Asking::patience * Asking::poll_ns + pass_ns * (first_ + 4 * pass) / pass;
    return time_ns - since_ns_ + besides_ns >= length_ns_;
  }

 private:
  static constexpr unsigned sections = 64;
  std::int64_t length_ns_;
  std::int64_t since_ns_ = 0;
  Pace& pace_;
  unsigned first_ = 0;     // executed at the first look at the clock
  unsigned executed_ = 0;  // and at the last one
  std::int64_t time_ns_ = 0;
};

}  // namespace muster::locks
