// SPDX-License-Identifier: BSD-3-Clause
#include "capi/engine.hpp"

#include <sched.h>
#include <unistd.h>

#include "capi/watch.hpp"
#include "memory/pages.hpp"

namespace muster {
namespace {

template <class B>
class EngineOf final : public Engine {
 public:
  EngineOf(const Plan& plan, const Block& block, const UserHooks& hooks)
      : Engine(plan, block, hooks),
        barrier_(plan_.shape(), block_.cells()),
        seats_(std::make_unique<std::unique_ptr<Seat>[]>(plan_.participants)) {}

  Status wait(unsigned rank) override {
    Seat* const seat = seat_of(rank);
    if (seat == nullptr) [[unlikely]]
      return Status::busy;
    if (const Status status = enter(*seat); status != Status::ok) [[unlikely]]
      return status;
    const bool done = barrier_.wait(seat->port, seat->ticket);
    leave(*seat);
    return done ? Status::ok : why_given_up(rank);
  }

  Status timed_wait(unsigned rank, std::int64_t timeout_ns) override {
    Seat* const seat = seat_of(rank);
    if (seat == nullptr) return Status::busy;
    const std::int64_t now = now_ns();
    if (timeout_ns < WaitPolicy::forever - now) seat->port.set_deadline(now + timeout_ns);
    const Status status = wait(rank);
    seat->port.set_deadline(WaitPolicy::forever);
    return status;
  }

  Status arrive(unsigned rank) override {
    if constexpr (B::traits.splits) {
      Seat* const seat = seat_of(rank);
      if (seat == nullptr) return Status::busy;
      if (const Status status = enter(*seat); status != Status::ok) return status;
      if (barrier_.arrive(seat->port, seat->ticket)) return Status::ok;
      leave(*seat);
      return why_given_up(rank);
    } else {
      return Status::unsupported;
    }
  }

  Status depart(unsigned rank) override {
    if constexpr (B::traits.splits) {
      Seat* const seat = seat_of(rank);
      if (seat == nullptr) return Status::busy;
      if (seat->phase % 2 == 0) return Status::invalid;
      const bool done = barrier_.depart(seat->port, seat->ticket);
      leave(*seat);
      return done ? Status::ok : why_given_up(rank);
    } else {
      return Status::unsupported;
    }
  }

 private:
  /// A rank's private state. Aligned to pairs of lines: neighbours' must not share what a
  /// prefetcher fetches together.
  struct alignas(256) Seat {
    Seat(EngineOf& engine, unsigned rank)
        : port(engine.block_.domain(), rank, engine.plan_.wait, engine.plan_.shared),
          ticket(engine.barrier_.ticket(rank)),
          mark(engine.block_.mark(rank)),
          watch(engine, rank, engine.hooks_) {
      port.set_hooks(watch.hooks());
    }
    Hardware port;
    typename B::Ticket ticket;
    Mark& mark;
    Watch watch;
    Word phase = 0;  // what mark.phase is
  };

  /// Null if the rank is another process's: its ticket is there.
  Seat* seat_of(unsigned rank) {
    if (Seat* const seat = seats_[rank].get()) [[likely]]
      return seat;
    return take_seat(rank);
  }

  [[gnu::noinline]] Seat* take_seat(unsigned rank) {
    Word nobody = 0;
    if (!block_.mark(rank).pid.compare_exchange_strong(nobody, static_cast<Word>(getpid()),
                                                       std::memory_order_relaxed)) {
      return nullptr;
    }
    seats_[rank] = std::make_unique<Seat>(*this, rank);
    if (block_.layout().paged) touch(rank);
    return seats_[rank].get();
  }

  /// First touch: the pages of a rank's block are to be on its NUMA node [K22, section 2.1]. Adds
  /// 0, since others may have written there already.
  void touch(unsigned rank) {
    std::byte* const memory = block_.rank_memory(rank);
    for (std::size_t at = 0; at < block_.layout().rank_stride; at += page_size()) {
      std::launder(reinterpret_cast<std::atomic<Word>*>(memory + at))
          ->fetch_add(0, std::memory_order_relaxed);
    }
  }

  Status enter(Seat& seat) noexcept {
    if (seat.phase % 2 != 0) return Status::busy;
    if (block_.domain().broken.load(std::memory_order_relaxed) != 0) return broken_status();
    seat.mark.phase.store(++seat.phase, std::memory_order_relaxed);
    return Status::ok;
  }

  /// Release: whoever reads this phase, to destroy the barrier, comes after everything this rank
  /// did in it.
  void leave(Seat& seat) noexcept {
    seat.mark.phase.store(++seat.phase, std::memory_order_release);
  }

  Status broken_status() const {
    const Status cause = breakage().cause;
    return cause == Status::peer ? Status::peer : Status::broken;
  }

  Status why_given_up(unsigned rank) const {
    const Breakage why = breakage();
    return why.cause == Status::timeout && why.rank == rank ? Status::timeout : broken_status();
  }

  B barrier_;
  std::unique_ptr<std::unique_ptr<Seat>[]> seats_;
};

}  // namespace

std::unique_ptr<Engine> Engine::make(const Plan& plan, const Block& block, const UserHooks& hooks) {
  return with_barrier<Hardware>(plan.algorithm.name, [&]<class B>() -> std::unique_ptr<Engine> {
    return std::make_unique<EngineOf<B>>(plan, block, hooks);
  });
}

void Engine::wait_until_left(bool only_own) const {
  const Word own = static_cast<Word>(getpid());
  for (unsigned rank = 0; rank < plan_.participants; ++rank) {
    const Mark& mark = block_.mark(rank);
    if (only_own && mark.pid.load(std::memory_order_relaxed) != own) continue;
    // Acquire: pairs with leave(); what the rank did in its wait is over before the memory goes.
    for (unsigned polls = 1; mark.phase.load(std::memory_order_acquire) % 2 != 0; ++polls) {
      if (plan_.shared && polls % 1024 == 0 && has_died(mark.pid.load(std::memory_order_relaxed)))
        break;
      sched_yield();
    }
  }
}

}  // namespace muster
