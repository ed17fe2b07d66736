// SPDX-License-Identifier: BSD-3-Clause
#include "capi/engine.hpp"

#include <algorithm>
#include <optional>

#include "capi/failure.hpp"
#include "fitting/follower.hpp"
#include "machine/format.hpp"
#include "machine/identity.hpp"
#include "machine/no_cancellation.hpp"
#include "memory/pages.hpp"
#include "wait/linger.hpp"

namespace muster {
namespace {

template <class B>
class EngineOf final : public Engine {
 public:
  EngineOf(const Plan& plan, const Block& block, const UserHooks& hooks)
      : Engine(plan, block, hooks), barrier_(plan.shape(), block.cells()) {}

  Whereabouts whereabouts() const override {
    Whereabouts found;
    if constexpr (follows) {
      for (unsigned rank = 0; rank < plan().participants; ++rank) {
        const Hardware::Cell& place = barrier_.place_of(rank);
        found.pus.push_back(place.value.load(std::memory_order_relaxed));
      }
      if (const Follower* const here = follower_.load(std::memory_order_acquire)) {
        const Follower::State state = here->state();
        found.composed = state.algorithm;
        found.changes = state.changes;
      }
    }
    return found;
  }

  void prepare() override {
    if (plan().first_episode == 0) return;
    Hardware port(block().domain(), 0, plan().wait, plan().shared);
    barrier_.prepare(port);
  }

 private:
  struct SeatOf final : Seat {
    SeatOf(EngineOf& its_engine, unsigned its_rank)
        : Seat(calls_of(), its_engine, its_rank),
          ticket(its_engine.barrier_.ticket(its_rank)),
          barrier(its_engine.barrier_),
          watch(its_engine, its_rank, its_engine.hooks()) {
      if constexpr (follows) watch.set_follower(its_engine.follower_of(its_rank));
      port.set_hooks(watch.hooks());
    }
    typename B::Ticket ticket;
    const B& barrier;
    Watch watch;
  };

  static int wait(Seat& base, std::int64_t deadline_ns) noexcept {
    auto& seat = static_cast<SeatOf&>(base);
    const Word phase = seat.phase();
    if (is_inside(phase) || !seat.enter(phase)) [[unlikely]]
      return refuse(seat);
    seat.port.set_deadline(deadline_ns);
    if (!seat.barrier.wait(seat.port, seat.ticket)) [[unlikely]]
      return give_up(seat, phase);
    seat.leave(phase);
    return MUSTER_OK;
  }

  static Seat::Calls calls_of() {
    Seat::Calls calls{.wait = wait, .arrive = nullptr, .depart = nullptr};
    if constexpr (B::traits.splits) {
      calls.arrive = [](Seat& base) {
        auto& seat = static_cast<SeatOf&>(base);
        return seat.barrier.arrive(seat.port, seat.ticket);
      };
      calls.depart = [](Seat& base) {
        auto& seat = static_cast<SeatOf&>(base);
        return seat.barrier.depart(seat.port, seat.ticket);
      };
    }
    return calls;
  }

  /// Rank 0's, where there is something to learn. Kept: explain() may ask it.
  Follower* follower_of(unsigned rank) {
    if (rank != 0) return nullptr;
    try {
      const Topology& machine = whole_machine();
      if (!Follower::pays_on(machine)) return nullptr;
      const bool progresses = hooks().progress != nullptr;
      const Profiles profiles = known_profiles(machine, progresses);
      own_follower_ = std::make_unique<Follower>(
          machine, plan().participants, costs_for(machine, progresses), now_ns,
          profiles.serving.empty() ? std::vector<Profile::Team>{} : profiles.serving.front().teams);
      follower_.store(own_follower_.get(), std::memory_order_release);  // pairs with whereabouts()
    } catch (const Error&) {  // the machine or a profile cannot be read: nothing is learnt
    }
    return own_follower_.get();
  }

  std::unique_ptr<Seat> make_seat(unsigned rank) override {
    return std::make_unique<SeatOf>(*this, rank);
  }

  static constexpr bool follows = std::is_same_v<B, Following<Hardware>>;

  B barrier_;
  std::unique_ptr<Follower> own_follower_;
  std::atomic<const Follower*> follower_{nullptr};
};

int fail_busy() noexcept {
  return fail(Status::busy,
              "this rank is waiting already, in another thread or process, or belongs to another "
              "process");
}

int fail_unsplit() noexcept {
  return fail(Status::unsupported,
              "only a barrier that was created with MUSTER_SPLIT has arrive and depart");
}

/// Of a rank that was at `mine` when its time ran out: names those who had not come.
int fail_late(const Engine& engine, Word mine) noexcept {
  return guarded([&] {
    constexpr unsigned named = 8;
    std::string names;
    unsigned missing = 0;
    engine.each_missing(mine, [&](unsigned rank, const Mark&) {
      if (++missing <= named) names += format("{} {}", missing == 1 ? "" : ",", rank);
    });
    if (missing > named) names += format(" and {} more", missing - named);
    if (missing == 0) {
      throw Error(Status::timeout,
                  "all came, but somebody did not go on in time: the barrier is broken for all");
    }
    const char* const who = missing == 1 ? "rank" : "ranks";
    throw Error(Status::timeout,
                format("{}{} did not arrive in time: the barrier is broken for all", who, names));
  });
}

int fail_broken(Breakage why) noexcept {
  return guarded([why] {
    if (why.cause == Status::peer) {
      throw Error(Status::peer,
                  format("rank {} died or has destroyed its side: the barrier is broken for all",
                         why.rank));
    }
    if (why.cause == Status::busy) {
      throw Error(Status::broken,
                  format("rank {} had not left its wait when the barrier was destroyed: it is "
                         "broken for all",
                         why.rank));
    }
    if (why.cause == Status::foreign) {
      throw Error(Status::broken,
                  "something has overwritten the barrier's memory: it is broken for all");
    }
    throw Error(Status::broken,
                format("rank {}{}: the barrier is broken for all", why.rank,
                       why.cause == Status::timeout ? " gave up waiting" : "'s completion failed"));
  });
}

/// Atoms that are waited for until there is no hope.
template <class Hopeless>
class Leaving : public PlainAtoms {
 public:
  explicit Leaving(Hopeless hopeless) : hopeless_(hopeless) {}

  template <class Pred, Order O>
  bool await(const Atom& phase, Pred pred, OrderTag<O>) const noexcept {
    std::int64_t look_at_ns = 0;
    for (unsigned looks = 0; !pred(phase.load(std_order(O))); ++looks) {
      const std::int64_t now = now_ns();  // a nap takes as long as others have the CPU
      if (now >= look_at_ns && hopeless_(now)) return false;
      if (now >= look_at_ns) look_at_ns = now + FutexLot::between_looks_ns;
      linger(looks);
    }
    return true;
  }

 private:
  Hopeless hopeless_;
};

}  // namespace

Seat::Seat(const Calls& its_calls, Engine& its_engine, unsigned its_rank)
    : calls(its_calls),
      mark(its_engine.block().mark(its_rank)),
      port(its_engine.block().domain(), its_rank, its_engine.plan().wait, its_engine.plan().shared),
      engine(its_engine),
      rank(its_rank) {}

std::unique_ptr<Engine> Engine::make(const Plan& plan, const Block& block, const UserHooks& hooks) {
  register_heavy_fence(plan.shared);
  return with_barrier<Hardware>(plan.algorithm.name, [&]<class B>() -> std::unique_ptr<Engine> {
    return std::make_unique<EngineOf<B>>(plan, block, hooks);
  });
}

void Engine::drop_seats() {
  for (unsigned rank = 0; rank < participants(); ++rank) seats_[rank].reset();
  is_seen_ = plan_.namespaces == own_thread().namespaces;
}

Breakage Engine::breakage() const {
  const Breakage why = Hardware::breakage_of(block_.domain());
  const bool is_ours = why.cause == Status::ok || why.cause == Status::timeout ||
                       why.cause == Status::broken || why.cause == Status::peer ||
                       why.cause == Status::busy || why.cause == Status::foreign;
  return is_ours && why.rank < participants() ? why : Breakage{Status::foreign, 0};
}

Engine::Engine(const Plan& plan, const Block& block, const UserHooks& hooks)
    : seats_(std::make_unique<std::unique_ptr<Seat>[]>(plan.participants)),
      plan_(plan),
      block_(block),
      hooks_(hooks),
      is_seen_(plan.namespaces == own_thread().namespaces) {}

Learnt Engine::learnt() const {
  Learnt all;
  if (!plan_.wait.learns) return all;
  all.yields_banned_ns = Hardware::yields_banned_ns(block_.domain());
  for (unsigned rank = 0; rank < plan_.participants; ++rank) {
    if (seat(rank) == nullptr) continue;
    const Hardware::Learnt own = seat(rank)->port.learnt();
    ++all.ranks;
    all.slept += own.slept;
    all.shorter += own.stay == Patience::Stay::shorter ? 1 : 0;
    all.not_awake += own.stay == Patience::Stay::none ? 1 : 0;
  }
  return all;
}

Word Engine::own_pid() const noexcept { return is_seen_ ? own_process() : unseen_pid; }

/// Null if the rank is another process's, whose ticket it is, or if this process lacks the
/// completion: see refuse_seat().
Seat* Engine::take_seat(unsigned rank) {
  if (Seat* const taken = seat(rank)) return taken;
  if (lacks_completion()) return nullptr;
  const NoCancellation whole;  // it may read the machine
  Word nobody = 0;
  if (!block_.mark(rank).pid.compare_exchange_strong(nobody, own_pid(),
                                                     std::memory_order_relaxed)) {
    return nullptr;
  }
  // It is 0, or the memory is not what it seems: then nobody waits for a wait that never began.
  block_.mark(rank).phase.store(0, std::memory_order_relaxed);
  try {
    seats_[rank] = make_seat(rank);
  } catch (...) {
    block_.mark(rank).pid.store(0, std::memory_order_relaxed);  // it may try again
    throw;
  }
  if (block_.layout().paged) touch(rank);
  return seat(rank);
}

/// First touch: the pages of a rank's block are to be on its NUMA node [K22, section 2.1]. Adds 0,
/// since others may have written there already.
void Engine::touch(unsigned rank) {
  std::byte* const memory = block_.rank_memory(rank);
  for (std::size_t at = 0; at < block_.layout().rank_stride; at += page_size()) {
    std::launder(reinterpret_cast<std::atomic<Word>*>(memory + at))
        ->fetch_add(0, std::memory_order_relaxed);
  }
}

int Engine::refuse_seat() const noexcept {
  if (!lacks_completion()) return fail_busy();
  return fail(Status::unsupported,
              "the barrier has a completion, and this process has attached without one: "
              "muster_barrier_set_hooks() before the first wait");
}

int Engine::refuse(const Seat& seat) noexcept {
  if (is_inside(seat.phase())) return fail_busy();
  return fail_broken(seat.engine.breakage());
}

int Engine::give_up(Seat& seat, Word phase) noexcept {
  // Nothing is broken yet where a barrier has found what cannot be: the others are told.
  if (seat.engine.breakage().cause == Status::ok) {
    seat.port.break_domain({Status::foreign, seat.rank});
  }
  const Breakage why = seat.engine.breakage();
  const bool late = why.cause == Status::timeout && why.rank == seat.rank;
  const int failed = late ? fail_late(seat.engine, seat.phase()) : fail_broken(why);
  seat.leave(phase);
  return failed;
}

int Engine::timed_wait(unsigned rank, std::int64_t timeout_ns) {
  Seat* const taken = take_seat(rank);
  if (taken == nullptr) return refuse_seat();
  return taken->calls.wait(*taken, until_ns(std::max<std::int64_t>(timeout_ns, 0)));
}

int Engine::arrive(unsigned rank) {
  Seat* const taken = take_seat(rank);
  if (taken == nullptr) return refuse_seat();
  if (!plan().split || taken->calls.arrive == nullptr) return fail_unsplit();
  const Word phase = taken->phase();
  if (is_inside(phase) || !taken->enter(phase)) return refuse(*taken);
  taken->port.set_deadline(WaitPolicy::forever);  // and not that of the wait before
  return taken->calls.arrive(*taken) ? MUSTER_OK : give_up(*taken, phase);
}

int Engine::depart(unsigned rank) {
  Seat* const taken = take_seat(rank);
  if (taken == nullptr) return refuse_seat();
  if (!plan().split || taken->calls.depart == nullptr) return fail_unsplit();
  const Word inside = taken->phase();
  if (!is_inside(inside)) return fail(Status::invalid, "depart without arrive");
  if (!taken->calls.depart(*taken)) return give_up(*taken, inside - 1);
  taken->leave(inside - 1);
  return MUSTER_OK;
}

bool Engine::is_waited_in_vain() const {
  if (breakage().cause != Status::ok) return false;
  for (unsigned rank = 0; rank < plan_.participants; ++rank) {
    const Seat* const own = seat(rank);
    if (own == nullptr) continue;
    const Word mine = own->phase();  // once: it may leave meanwhile
    if (is_inside(mine) && is_anyone_missing(mine)) return true;
  }
  return false;
}

bool Engine::is_anyone_missing(Word mine) const {
  bool found = false;
  each_missing(mine, [&](unsigned, const Mark&) { found = true; });
  return found;
}

bool Engine::wait_until_left(bool only_own) const {
  std::optional<Word> mine;  // a phase that one of ours has come to
  for (unsigned rank = 0; rank < plan_.participants && !mine; ++rank) {
    if (seat(rank) != nullptr) mine = seat(rank)->phase();
  }
  std::int64_t until_ns = now_ns() + leaving_ns_max;
  bool told = false;
  bool all = true;
  for (unsigned rank = 0; rank < plan_.participants; ++rank) {
    const Seat* const own = seat(rank);
    if (only_own && own == nullptr) continue;
    const Mark& mark = block_.mark(rank);
    bool died = false;
    // What others write may be anything: nobody alive is an episode or more away from another.
    const Leaving port([&](std::int64_t now) {
      if (now >= until_ns) return true;
      if (own != nullptr) return false;
      died = plan_.shared && has_died(mark.pid.load(std::memory_order_relaxed));
      const auto ahead =
          static_cast<std::int32_t>(mark.phase.load(std::memory_order_relaxed) - mine.value_or(0));
      return died || (mine && (ahead < -2 || ahead > 2));
    });
    const std::atomic<Word>& phase = own != nullptr ? own->own_phase : mark.phase;
    if (await_left(port, phase) || died) continue;
    PlainAtoms atoms;
    break_for_all(atoms, block_.domain().broken, Breakage{Status::busy, rank}.encode());
    if (!told) until_ns = now_ns() + leaving_ns_max;
    told = true;
    if (!await_left(port, phase) && !died) all = false;
  }
  return all;
}

void Engine::depart_for_good() const {
  const Word own = own_pid();
  for (unsigned rank = 0; rank < plan_.participants; ++rank) {
    Word pid = own;  // in a fork's child the seats are its parent's
    if (!plan_.shared || seat(rank) == nullptr) continue;
    block_.mark(rank).pid.compare_exchange_strong(pid, departed, std::memory_order_release,
                                                  std::memory_order_relaxed);
  }
}

}  // namespace muster
