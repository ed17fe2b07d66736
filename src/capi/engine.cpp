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

  void prepare() override {
    if (plan_.first_episode == 0) return;
    Hardware port(block_.domain(), 0, plan_.wait, plan_.shared);
    barrier_.prepare(port);
  }

  void drop_seats() override {
    for (unsigned rank = 0; rank < plan_.participants; ++rank) seats_[rank].reset();
  }

  Outcome wait(unsigned rank) override {
    const Entry entry = enter(rank);
    if (entry.seat == nullptr) [[unlikely]]
      return entry.refused;
    return leave(*entry.seat, barrier_.wait(entry.seat->port, entry.seat->ticket));
  }

  Outcome timed_wait(unsigned rank, std::int64_t timeout_ns) override {
    const Entry entry = enter(rank);
    if (entry.seat == nullptr) return entry.refused;
    Hardware& port = entry.seat->port;
    const std::int64_t now = now_ns();
    if (timeout_ns < WaitPolicy::forever - now) port.set_deadline(now + timeout_ns);
    const bool done = barrier_.wait(port, entry.seat->ticket);
    port.set_deadline(WaitPolicy::forever);
    return leave(*entry.seat, done);
  }

  Outcome arrive(unsigned rank) override {
    if constexpr (B::traits.splits) {
      const Entry entry = enter(rank);
      if (entry.seat == nullptr) return entry.refused;
      if (barrier_.arrive(entry.seat->port, entry.seat->ticket)) return {};
      return leave(*entry.seat, false);
    } else {
      return {Status::unsupported, {}};
    }
  }

  Outcome depart(unsigned rank) override {
    if constexpr (B::traits.splits) {
      Seat* const seat = seat_of(rank);
      if (seat == nullptr) return {Status::busy, {}};
      if (seat->mark.phase.load(std::memory_order_relaxed) % 2 == 0) return {Status::invalid, {}};
      return leave(*seat, barrier_.depart(seat->port, seat->ticket));
    } else {
      return {Status::unsupported, {}};
    }
  }

 private:
  /// A rank's private state. Aligned to pairs of lines: neighbours' must not share what a
  /// prefetcher fetches together.
  struct alignas(256) Seat {
    Seat(EngineOf& engine, unsigned its_rank)
        : port(engine.block_.domain(), its_rank, engine.plan_.wait, engine.plan_.shared),
          ticket(engine.barrier_.ticket(its_rank)),
          mark(engine.block_.mark(its_rank)),
          rank(its_rank),
          watch(engine, its_rank, engine.hooks_) {
      port.set_hooks(watch.hooks());
    }
    Hardware port;
    typename B::Ticket ticket;
    Mark& mark;
    unsigned rank;
    Watch watch;
  };

  /// A seat taken for one episode, or why not.
  struct Entry {
    Seat* seat;
    Outcome refused;
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

  Entry enter(unsigned rank) {
    Seat* const seat = seat_of(rank);
    if (seat == nullptr) [[unlikely]]
      return {nullptr, {Status::busy, {}}};
    const Word phase = seat->mark.phase.load(std::memory_order_relaxed);
    if (phase % 2 != 0) [[unlikely]]
      return {nullptr, {Status::busy, {}}};
    if (block_.domain().broken.load(std::memory_order_relaxed) != 0) [[unlikely]]
      return {nullptr, given_up(breakage())};
    seat->mark.phase.store(phase + 1, std::memory_order_relaxed);
    return {seat, {}};
  }

  /// Release: whoever reads this phase, to destroy the barrier, comes after everything this rank
  /// did in it. Nothing of the barrier is touched afterwards.
  Outcome leave(Seat& seat, bool done) noexcept {
    Outcome outcome;
    if (!done) [[unlikely]] {
      outcome = given_up(breakage());
      if (outcome.why.cause == Status::timeout && outcome.why.rank == seat.rank) {
        outcome.status = Status::timeout;
      }
    }
    const Word phase = seat.mark.phase.load(std::memory_order_relaxed);
    seat.mark.phase.store(phase + 1, std::memory_order_release);
    return outcome;
  }

  static Outcome given_up(Breakage why) noexcept {
    return {why.cause == Status::peer ? Status::peer : Status::broken, why};
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
