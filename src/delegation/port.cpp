// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/port.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "delegation/places.hpp"

namespace muster::delegation {
namespace {

/// Before it says that it waits. Meanwhile it looks at the lock, the first time after so long, then
/// after twice that each time; so often in a row, since who runs many sections in a row gives it
/// back between two of them, too.
constexpr std::int64_t patience_ns = 8'000;
constexpr std::int64_t first_look_ns = 1'000;
constexpr unsigned looks_in_a_row = 16;
/// Then before it looks whether `other` is 0, and sleeps: whoever has the lock comes at once,
/// if it runs and its section is short.
constexpr std::int64_t answer_ns = 2'000;
/// Where there are more threads than CPUs it yields first, so often: few of those that sleep are
/// woken, so threads that sleep at once hardly ever get the lock. It also yields before it says
/// that it waits, and once more if it has said so the last time: who says so is let in at times,
/// and of threads that yield in turn the first one would always be the same.
constexpr unsigned yields_before_sleep = 16;
constexpr unsigned yields_before_asking = 1;
/// A sleep's length, the next one's twice that, up to so often. Only who is answered and could not
/// run anyway is not woken; and the sleepers of await_either() where nobody is told.
struct Slices {
  std::int64_t first_ns;
  std::int64_t longest_ns;
};
constexpr Slices if_answered{4'000'000, 8'000'000};
constexpr Slices if_not_answered{50'000, 1'000'000};
/// Whoever is let in has been answered just before, comes again, and looks at the lock after
/// first_look_ns, or a yield later where many wait. One that is woken for it may need this CPU.
constexpr std::int64_t come_back_ns = 4'000;
constexpr std::int64_t wake_up_ns = 200'000;
/// A line is there and back after 40 to 400 ns.
constexpr std::int64_t off_at_first_ns = 250;
constexpr std::int64_t off_longest_ns = 4'000;

void pause_until(std::int64_t time_ns) noexcept {
  do relax();
  while (now_ns() < time_ns);
}

}  // namespace

bool Port::is_near(Word place) const noexcept {
  try {
    return Places::instance().is_thread_near(place, rank());
  } catch (const std::exception&) {  // the machine cannot be read
    return true;
  }
}

void Port::change_policy() noexcept {
  set_policy(is_crowded() ? WaitPolicy::oversubscribed() : WaitPolicy::dedicated());
}

/// Until then; where there are more threads than CPUs, one of the others may need this CPU.
void Port::let_others_run(std::int64_t until_ns) noexcept {
  if (is_crowded()) {
    sched_yield();
    return;
  }
  pause_until(until_ns);
}

void Port::pause_briefly() noexcept { pause_until(now_ns() + off_at_first_ns); }

void Port::back_off() noexcept {
  const std::int64_t now = now_ns();
  const bool again_soon = now - off_until_ns_ < off_ns_;
  off_ns_ = std::clamp(again_soon ? 2 * off_ns_ : off_ns_ / 2, off_at_first_ns, off_longest_ns);
  off_until_ns_ = now + off_ns_;
  let_others_run(off_until_ns_);
}

int Port::await_either_slowly(Cell& own, const Cell& other, Cell& wanted, Cell& dozing,
                              const Expectation<Cell>& expected) noexcept {
  const auto says_somebody = [&] {
    return wanted.value.load(std::memory_order_relaxed) == by_another;
  };
  // If somebody else has said it and is not answered either, there is nothing to be patient for.
  const std::int64_t patience = says_somebody() ? answer_ns : patience_ns;
  if (!expected.answer) {
    return poll_for(own, patience) ? 0 : wait_for_turn(&own, other, wanted, dozing);
  }
  const auto is_next = [&] {
    return expected.served == nullptr ||
           at_least(expected.counted)(expected.served->value.load(std::memory_order_acquire));
  };
  const bool crowded = is_crowded();
  int over = await_patiently(own, other, crowded ? first_look_ns : patience);
  if (over < 0 && crowded) over = await_yielding(own, other, yields_before_asking + asked_);
  asked_ = 0;
  std::int64_t slice_ns = if_answered.first_ns;
  FutexLot lot(false);
  while (over < 0) {
    if (!says_somebody()) {
      set(wanted);
      asked_ = 1;
      if (poll_for(own, answer_ns)) return 0;
    }
    if (is_free(other)) return poll(own, 1) ? 0 : 1;
    if (crowded) over = await_yielding(own, other, yields_before_sleep);
    if (over >= 0) break;
    if (is_next()) {
      set_slice(lot, slice_ns);
      slice_ns = std::min(2 * slice_ns, if_answered.longest_ns);
      const Word request = Doze::unmark(lot, own.value);
      Doze::sleep(lot, announcements_, own.value, own.sleepers, request, dozing.value,
                  [&] { return request == 0 || is_free(other); });
    } else {
      sched_yield();
    }
    if (poll_for(own, answer_ns)) return 0;
  }
  return over;
}

/// -1: neither is over within so long.
int Port::await_patiently(const Cell& own, const Cell& held, std::int64_t time_ns) noexcept {
  for (std::int64_t step_ns = first_look_ns; time_ns > 0; time_ns -= step_ns, step_ns *= 2) {
    if (poll_for(own, std::min(step_ns, time_ns))) return 0;
    if (const int over = look_at_both(own, held); over >= 0) return over;
  }
  return -1;
}

int Port::await_yielding(const Cell& own, const Cell& held, unsigned yields) noexcept {
  int over = -1;
  for (; yields > 0 && over < 0; --yields) {
    sched_yield();
    over = look_at_both(own, held);
  }
  return over;
}

int Port::look_at_both(const Cell& own, const Cell& held) noexcept {
  for (unsigned looks = looks_in_a_row; looks > 0; --looks) {
    if (poll(own, 1)) return 0;
    if (!is_free(held)) return -1;
  }
  return poll(own, 1) ? 0 : 1;  // if both are 0, the request is executed
}

/// Sleeps where who has the lock wakes one: let_one_in(). Looks at both while it is awake, since it
/// may be let in at any moment then. `own`, if there is one, a server may execute that has come.
int Port::wait_for_turn(const Cell* own, const Cell& held, Cell& wanted, Cell& dozing) noexcept {
  int over = -1;
  const auto is_over = [&] {
    over = own != nullptr && is_free(*own) ? 0 : is_free(held) ? 1 : -1;
    return over >= 0;
  };
  const auto is_over_soon = [&] {
    const std::int64_t until_ns = now_ns() + answer_ns;
    do {
      for (unsigned polls = polls_at_last; polls > 0 && !is_over(); --polls) relax();
    } while (over < 0 && now_ns() < until_ns);
    return over >= 0;
  };
  std::int64_t slice_ns = if_not_answered.first_ns;
  FutexLot lot(false);
  for (;;) {
    if (is_over_soon()) return over;
    set(wanted);
    if (is_over_soon()) return over;
    set_slice(lot, slice_ns);
    slice_ns = std::min(2 * slice_ns, if_not_answered.longest_ns);
    Doze::sleep(lot, announcements_, dozing.value, dozing.sleepers, 1, dozing.value, is_over);
  }
}

void Port::let_one_in(const Cell& held, const Cell& dozing, bool many) noexcept {
  const bool sleeps = wake_one(dozing);
  const std::int64_t start_ns = now_ns();
  for (;;) {
    for (unsigned polls = polls_at_last; polls > 0; --polls) {
      if (!is_free(held)) return;
      relax();
    }
    const std::int64_t waited_ns = now_ns() - start_ns;
    if (waited_ns >= (sleeps ? wake_up_ns : many ? come_back_ns : answer_ns)) return;
    if (sleeps && waited_ns >= answer_ns) sched_yield();
  }
}

/// Where nobody is told that somebody waits: a server or a combiner comes of itself, and if it has
/// no CPU, a yield gives it one.
int Port::await_either(Cell& own, const Cell& other, OrderTag<Order::acquire>, Awaited awaited,
                       Site) noexcept {
  if (awaited == Awaited::combiner) {
    for (unsigned looks = looks_for_combiner; looks > 0; --looks) {
      if (is_free(own)) return 0;
      if (is_free(other)) return is_free(own) ? 0 : 1;
      back_off();
    }
  }
  follow_crowd();
  std::int64_t slice_ns = if_not_answered.first_ns;
  FutexLot lot(false);
  for (Wait wait(*this, awaited);;) {
    if (is_free(own)) return 0;
    if (is_free(other)) return is_free(own) ? 0 : 1;
    const Next next = wait.next();
    if (next == Next::give_up) return -1;
    if (next != Next::sleep) continue;
    lot.set_slice(slice_ns);
    slice_ns = std::min(2 * slice_ns, if_not_answered.longest_ns);
    sleep_on(lot, announcements_, own.value, own.sleepers, equals(0));
  }
}

/// True if `own` becomes 0 within so long.
bool Port::poll_for(const Cell& own, std::int64_t time_ns) noexcept {
  const std::int64_t until_ns = now_ns() + time_ns;
  do {
    if (poll(own, polls_at_last)) return true;
  } while (now_ns() < until_ns);
  return false;
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

}  // namespace muster::delegation
