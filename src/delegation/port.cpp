// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/port.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>

#include "delegation/places.hpp"
#include "lock/ask.hpp"
#include "wait/linger.hpp"

namespace muster::delegation {
namespace {

bool poll_for(std::int64_t time_ns, auto is_over) noexcept {
  const std::int64_t until_ns = now_ns() + time_ns;
  do {
    for (unsigned polls = Port::polls_per_clock; polls > 0; --polls, relax()) {
      if (is_over()) return true;
    }
  } while (now_ns() < until_ns);
  return false;
}

}  // namespace

bool Port::is_near(Word place) const noexcept {
  try {
    const Places& places = Places::instance();
    return places.is_near(places.core_of_this_thread(rank()), place);
  } catch (const std::exception&) {  // the machine cannot be read
    return true;
  }
}

void Port::give_way() noexcept {
  if (!is_time_limited()) return static_cast<void>(sched_yield());
  const std::int64_t threads = seated_threads.load(std::memory_order_relaxed);
  nap_for(std::min(WaitPolicy::sleep_costs_ns * threads / cpus_last_counted(), Asking::sleep_ns));
}

void Port::change_policy() noexcept {
  set_policy(is_crowded() ? WaitPolicy::oversubscribed() : WaitPolicy::dedicated());
}

/// Where there are more threads than CPUs, one of the others may need this CPU.
void Port::back_off() noexcept {
  if (finds_crowd()) return static_cast<void>(sched_yield());
  poll_for(Asking::poll_ns, [] { return false; });
}

bool Port::is_soon_free(const Cell& cell) noexcept {
  return poll_for(Asking::patience * Asking::poll_ns, [&] { return is_free(cell); });
}

/// How a client paces itself that asks for a lock.
struct Port::Pace {
  Asking& asking;
  const Expectation<Cell>& expected;

  Asking::Next next(auto said) noexcept { return asking.next(said()); }
  static bool pause(Asking::Next next, auto until) noexcept {
    if (next == Asking::Next::yield) {
      give_way();
    } else {
      poll_for(Asking::poll_ns, until);
    }
    return true;
  }
  bool is_next() const noexcept {
    if (expected.served == nullptr) return true;
    const Word served = expected.served->value.load(std::memory_order_relaxed);
    if (at_least(expected.counted)(served)) return true;
    sched_yield();
    return false;
  }
};

/// Of sleeps that somebody ends, so that they may be long: 64 threads wake 8,000 times a second.
FutexLot Port::lot_for_long() noexcept {
  FutexLot lot(false);
  const std::int64_t threads = seated_threads.load(std::memory_order_relaxed);
  const std::int64_t slice_ns = std::max(Asking::sleep_ns, threads * Asking::sleep_ns / 64);
  lot.set_slice(std::max(std::min(slice_ns, lot.longest_slice_ns()),
                         shortest_sleep_ns.load(std::memory_order_relaxed)));
  return lot;
}

int Port::ask(Cell* own, const Cell& held, Cell& wanted, Cell& dozing,
              const Expectation<Cell>& expected) noexcept {
  FutexLot lot = lot_for_long();
  // Who waits for the lock itself is woken for it, and let in. A yield would cost it a time slice.
  const bool is_crowd = finds_crowd();
  const bool yields = is_crowd && own != nullptr;
  Asking asking(yields, asked_, expected.lost, is_time_limited() || is_crowd != yields);
  Pace pace{asking, expected};
  const int over = locks::ask(*this, own, expected.answer, held, wanted, pace, [&] {
    const auto bed = [](Cell& cell) { return locks::Bed<Atom>{cell.value, cell.sleepers}; };
    locks::sleep_in_turn(lot, announcements_,
                         own != nullptr ? std::optional(bed(*own)) : std::nullopt, expected.answer,
                         held.value, bed(dozing), [&] { return pace.is_next(); });
    return true;
  });
  asked_ = asking.asked();
  return over;
}

void Port::let_one_in(const Cell& held, const Cell& dozing) noexcept {
  const bool sleeps = wake_one(dozing);
  const auto is_taken = [&] { return !is_free(held); };
  if (poll_for(Asking::poll_ns, is_taken) || !sleeps) return;
  // One that is woken for it may need this CPU.
  const std::int64_t until_ns = now_ns() + WaitPolicy::sleep_costs_ns;
  while (!is_taken() && now_ns() < until_ns) sched_yield();
}

/// Where nobody is told that somebody waits: a server or a combiner comes of itself, and if it has
/// no CPU, a yield gives it one.
int Port::await_either(Cell& own, const Cell& other, OrderTag<Order::acquire>, Awaited awaited,
                       Site) noexcept {
  if (awaited == Awaited::combiner) {
    for (unsigned looks = Asking::patience; looks > 0; --looks) {
      if (is_free(own)) return 0;
      if (is_free(other)) return is_free(own) ? 0 : 1;
      back_off();
    }
  }
  follow_crowd();
  // Which combiner comes next nobody knows: it wakes those whose requests it executes.
  FutexLot lot = awaited == Awaited::combiner ? FutexLot(false) : lot_for_long();
  Wait wait(*this, awaited);
  const locks::Bed<Atom> bed{own.value, own.sleepers};
  return locks::await_answer(lot, announcements_, bed, other.value, [&](Word there) {
    const Next next = wait.next();
    // While this thread spins on the server's PU, nobody serves.
    const bool spins = next == Next::look && policy().spin_ns != 0;
    if (spins && awaited != Awaited::combiner && there == pu()) sched_yield();
    return next;
  });
}

void Port::wake_sleepers_of(Cell& cell) noexcept {
  FutexLot lot(false);
  wake_sleepers(lot, announcements_, cell.value, cell.sleepers);
}

Reserved reserve(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(Status::no_memory, "no " + std::to_string(bytes) + " bytes of address space");
  }
  return {static_cast<std::byte*>(memory), Unmap{bytes}};
}

void Unmap::operator()(std::byte* memory) const noexcept { munmap(memory, bytes); }

}  // namespace muster::delegation
