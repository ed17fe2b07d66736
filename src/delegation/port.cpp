// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/port.hpp"

#include <cstdlib>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <vector>

namespace muster::delegation {
namespace {

/// Before it says that it waits: some sections, and a line's way there and back. Meanwhile it looks
/// at the lock, the first time after so long, then after twice that each time; so often in a row,
/// since who runs many sections in a row gives it back between two of them, too.
constexpr std::int64_t patience_ns = 8'000;
constexpr std::int64_t first_look_ns = 1'000;
constexpr unsigned looks_in_a_row = 16;
/// A line is there and back after 40 to 400 ns.
constexpr std::int64_t off_at_first_ns = 250;
constexpr std::int64_t off_longest_ns = 4'000;

void pause_until(std::int64_t time_ns) noexcept {
  do relax();
  while (now_ns() < time_ns);
}

}  // namespace

void Port::change_policy() noexcept {
  set_policy(is_crowded() ? WaitPolicy::oversubscribed() : WaitPolicy::dedicated());
}

void Port::back_off() noexcept {
  const std::int64_t now = now_ns();
  const bool again_soon = now - off_until_ns_ < off_ns_;
  off_ns_ = std::clamp(again_soon ? 2 * off_ns_ : off_ns_ / 2, off_at_first_ns, off_longest_ns);
  off_until_ns_ = now + off_ns_;
  pause_until(off_until_ns_);
}

int Port::await_either_slowly(Cell& own, const Cell& other, Cell& wanted, bool answered) noexcept {
  // If somebody else has said it and is not answered either, there is nothing to be patient for.
  if (wanted.value.load(std::memory_order_relaxed) != by_another) {
    if (const int over = await_patiently(own, other); over >= 0) return over;
  }
  return await_until(&own, other, answered ? own : wanted, &wanted);
}

/// -1: neither is over soon.
int Port::await_patiently(const Cell& own, const Cell& held) noexcept {
  std::int64_t until_ns = now_ns();
  for (std::int64_t step_ns = first_look_ns; step_ns < patience_ns; step_ns *= 2) {
    until_ns += step_ns;
    do {
      if (poll(own, polls_at_last)) return 0;
    } while (now_ns() < until_ns);
    if (const int over = look_at_both(own, held); over >= 0) return over;
  }
  return -1;
}

int Port::look_at_both(const Cell& own, const Cell& held) noexcept {
  for (unsigned looks = looks_in_a_row; looks > 0; --looks) {
    if (poll(own, 1)) return 0;
    if (!is_free(held)) return -1;
  }
  return poll(own, 1) ? 0 : 1;  // if both are 0, the request is executed
}

void Port::let_one_in(const Cell& held, const Cell& wanted) noexcept {
  const std::int64_t gives_way_ns = wake_one(wanted) ? WaitPolicy::sleep_costs_ns : patience_ns;
  for (const std::int64_t until_ns = now_ns() + gives_way_ns; now_ns() < until_ns;) {
    for (unsigned polls = polls_at_last; polls > 0; --polls) {
      if (!is_free(held)) return;
      relax();
    }
  }
}

/// Where nobody is told that somebody waits: a server or a combiner comes of itself, and if it has
/// no CPU, a yield gives it one.
int Port::await_either(Cell& own, const Cell& other, OrderTag<Order::acquire>,
                       Awaited awaited) noexcept {
  if (awaited == Awaited::combiner) {
    for (unsigned looks = looks_for_combiner; looks > 0; --looks) {
      if (is_free(own)) return 0;
      if (is_free(other)) return is_free(own) ? 0 : 1;
      back_off();
    }
  }
  return await_until(&own, other, own, nullptr);
}

/// By the policy of its waits. Looks at the lock seldom, and says in `wanted`, if there is one, that
/// it waits: whoever has the lock takes that back. `own`, if there is one, a server may execute that
/// has come.
int Port::await_until(Cell* own, const Cell& held, Cell& slept_on, Cell* wanted) noexcept {
  follow_crowd();
  FutexLot lot(false);
  static const long sl = getenv("SL")?atol(getenv("SL")):1000; lot.set_slice(sl*1000);
  static const long pl = getenv("PL")?atol(getenv("PL")):1000; if (is_crowded()) set_policy({0, pl*1000, "yield-sleep"});
  for (Wait wait(*this, Awaited::anyone);;) {
    if (wanted != nullptr && wanted->value.load(std::memory_order_relaxed) != by_another) {
      set(*wanted);
    }
    if (is_free(held)) return own != nullptr && is_free(*own) ? 0 : 1;
    for (unsigned polls = polls_at_last; polls > 0; --polls) {
      if (own != nullptr && is_free(*own)) return 0;
      const Next next = wait.next();
      if (next == Next::give_up) return -1;
      if (next == Next::sleep) {
        sleep_on(lot, announcements_, slept_on.value, slept_on.sleepers, equals(0));
        break;
      }
    }
  }
}

void Port::wake_or_hold(Cell& cell) noexcept {
  if (!holds_wakes_) {
    FutexLot lot(false);
    return wake_sleepers(lot, announcements_, cell.value, cell.sleepers);
  }
  if (FutexLot::peek(cell.sleepers) != 0) hold(cell);
}

/// Of those whose requests are executed no more are woken than can run; the others find out when
/// they next look, and leave the CPUs to the lock till then. Where more can run than are
/// remembered, some may as well run now.
void Port::hold(Cell& cell) noexcept {
  if (may_wake_ == 0) return;
  --may_wake_;
  if (held_count_ == held_.size()) wake_all_held();
  held_[held_count_++] = &cell;
}

void Port::wake_all_held() noexcept {
  const FutexLot lot(false);
  for (unsigned i = 0; i < held_count_; ++i) lot.unpark_all(held_[i]->value);
  held_count_ = 0;
}

Reserved::Reserved(std::size_t bytes) : bytes_(bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(Status::no_memory, "no " + std::to_string(bytes) + " bytes of address space");
  }
  data_ = static_cast<std::byte*>(memory);
}

Reserved::~Reserved() { munmap(data_, bytes_); }

// What was handled lives as long as the thread: destructors on the way may look at it.

}  // namespace muster::delegation
