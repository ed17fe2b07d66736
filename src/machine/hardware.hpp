// SPDX-License-Identifier: BSD-3-Clause
// The hardware machine: std::atomic, real threads and processes, real waiting. One port per
// participant; a port is used by one thread at a time. Everything that is not the fast path of an
// access stands in hardware.cpp.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "machine/current_pu.hpp"
#include "machine/error.hpp"
#include "machine/lifetime.hpp"
#include "machine/machine.hpp"
#include "machine/pu_count.hpp"
#include "wait/futex_lot.hpp"
#include "wait/patience.hpp"
#include "wait/relax.hpp"
#include "wait/sleep.hpp"

namespace muster {

constexpr std::memory_order std_order(Order order) noexcept {
  constexpr std::memory_order orders[] = {std::memory_order_relaxed, std::memory_order_acquire,
                                          std::memory_order_release, std::memory_order_acq_rel};
  return orders[static_cast<int>(order)];
}
/// A compare-exchange that fails only reads.
constexpr std::memory_order failure_order(Order order) noexcept {
  return order == Order::acquire || order == Order::acq_rel ? std::memory_order_acquire
                                                            : std::memory_order_relaxed;
}

/// Atoms that nobody sleeps on: the primitives of machine/lifetime.hpp but the wait.
struct PlainAtoms {
  using Atom = std::atomic<Word>;

  template <Order O>
  Word load(const Atom& atom, OrderTag<O>) const noexcept {
    return atom.load(std_order(O));
  }
  template <Order O>
  void store(Atom& atom, Word word, OrderTag<O>) const noexcept {
    atom.store(word, std_order(O));
  }
  template <Order O>
  bool compare_exchange(Atom& atom, Word& expected, Word desired, OrderTag<O>) const noexcept {
    return atom.compare_exchange_strong(expected, desired, std_order(O), failure_order(O));
  }
};

/// Why a barrier broke, in one sticky word of its domain; 0 while it is whole.
struct Breakage {
  Status cause = Status::ok;  ///< timeout, peer or broken
  unsigned rank = 0;          ///< who timed out or died; below 2^24

  constexpr Word encode() const { return static_cast<Word>(cause) << 24 | (rank & 0xffffffU); }
  static constexpr Breakage decode(Word word) {
    return {static_cast<Status>(word >> 24), word & 0xffffffU};
  }
};

/// What a participant does besides waiting. All are optional; they are called by the waiting
/// participant itself.
struct Hooks {
  /// About once a microsecond while a wait is not over; true: no sleep before the next call.
  bool (*progress)(void* context) = nullptr;
  bool (*completion)(void* context) = nullptr;  ///< by the champion; false breaks the barrier
  /// With each look at the clock of a wait that began then, after another look in vain;
  /// a nonzero Breakage::encode() ends it and breaks the barrier for all.
  Word (*inspect)(void* context, std::int64_t began_ns, std::int64_t now_ns) = nullptr;
  /// Once time is up: whether everybody has come. Then a wait takes only what others need to go on.
  bool (*all_came)(void* context) = nullptr;
  /// Machine::compose(), of the participant that looks where all sit.
  std::span<const Word> (*compose)(void* context, std::span<const Word> pus) = nullptr;
  void* context = nullptr;
};

/// Longer than it takes to leave, once all have come, on a machine that is short of CPUs.
inline constexpr std::int64_t leaving_ns_max = 3'000'000'000;

class Hardware {
 public:
  using Atom = std::atomic<Word>;

  struct Cell {
    Atom value;
    Atom sleepers;  ///< how many sleep on `value`; see wait/sleep.hpp
  };

  template <class T>
  struct Plain {
    T value;
  };

  /// One line, shared by all participants, zero at first; read by every store, written by sleepers
  /// and seldom by others.
  struct Domain {
    Announcements<Atom> announcements;
    Atom broken;
    Atom yield_ban;  ///< YieldBan
  };

  static Breakage breakage_of(const Domain& domain) noexcept {
    PlainAtoms atoms;
    return Breakage::decode(why_broken(atoms, domain.broken));
  }

  /// Where the cells are in this process: a rank's `line` bytes apart, `rank_stride` bytes between
  /// its first and the next rank's; global ones `global_stride` bytes apart (0: a line). Plain
  /// words are at `words`.
  class Cells {
   public:
    Cells() = default;
    Cells(std::byte* global, std::byte* ranks, std::size_t line, std::size_t rank_stride,
          std::size_t global_stride = 0, std::byte* words = nullptr) noexcept
        : global_(global),
          ranks_(ranks),
          line_(line),
          rank_stride_(rank_stride),
          global_stride_(global_stride != 0 ? global_stride : line),
          words_(words) {}
    Cell& global(unsigned index) const noexcept { return at(global_ + index * global_stride_); }
    Cell& of(unsigned rank, unsigned index) const noexcept {
      return at(ranks_ + rank * rank_stride_ + index * line_);
    }

    Plain<Word>& word(unsigned index) const noexcept {
      return *std::launder(reinterpret_cast<Plain<Word>*>(words_ + index * sizeof(Word)));
    }

   private:
    static Cell& at(std::byte* where) noexcept {
      return *std::launder(reinterpret_cast<Cell*>(where));
    }

    std::byte* global_ = nullptr;
    std::byte* ranks_ = nullptr;
    std::size_t line_ = 0;
    std::size_t rank_stride_ = 0;
    std::size_t global_stride_ = 0;
    std::byte* words_ = nullptr;
  };

  /// `shared`: the participants are several processes. `asks`: see FutexLot.
  Hardware(Domain& domain, unsigned rank, const WaitPolicy& policy, bool shared,
           bool asks = true) noexcept;
  /// For a machine that is hardware by name alone: no cell is waited for.
  explicit Hardware(Domain& domain) noexcept : domain_(&domain) {}

  void set_hooks(const Hooks& hooks) noexcept { hooks_ = hooks; }
  void set_policy(const WaitPolicy& policy) noexcept;
  unsigned rank() const noexcept { return rank_; }
  const WaitPolicy& policy() const noexcept { return patience_.policy(); }
  /// What it has learnt from its waits; may be asked by any thread.
  struct Learnt {
    Patience::Stay stay = Patience::Stay::whole;  ///< awake, in the next wait
    Word slept = 0;                               ///< so many waits; wraps
  };
  Learnt learnt() const noexcept {
    return {std::atomic_ref(stay_).load(std::memory_order_relaxed),
            std::atomic_ref(slept_).load(std::memory_order_relaxed)};
  }
  /// For how long yields are banned still; 0: they are not.
  static std::int64_t yields_banned_ns(const Domain& domain) noexcept {
    return YieldBan(domain.yield_ban.load(std::memory_order_relaxed)).left_ns(now_ns());
  }
  /// Absolute, on now_ns(); WaitPolicy::forever for none. A wait that is not over by then gives up
  /// and breaks the domain, `leaving_ns_max` later if all have come.
  void set_deadline(std::int64_t at_ns) noexcept { deadline_ns_ = at_ns; }
  /// Why waits give up, if they do.
  Breakage breakage() const noexcept { return breakage_of(*domain_); }
  /// From phase `at`, in which the rank is outside, to the next. False if the domain is broken.
  bool enter(Atom& phase, Word at) const noexcept {
    PlainAtoms atoms;
    return muster::enter(atoms, domain_->broken, phase, at);
  }
  /// Breaks the domain for all its participants, unless it is broken already. Whoever waits gives
  /// up within one sleep slice.
  void break_domain(Breakage why) noexcept;

  template <Order O>
  Word load(const Cell& cell, OrderTag<O>, Site = Site::here()) noexcept {
    return cell.value.load(std_order(O));
  }

  template <Order O>
  void store(Cell& cell, Word word, OrderTag<O>, Site = Site::here()) noexcept {
    cell.value.store(word, std_order(O));
    wake_sleepers(lot_, domain_->announcements, cell.value, cell.sleepers);
  }

  template <Order O>
  Word exchange(Cell& cell, Word word, OrderTag<O>, Site = Site::here()) noexcept {
    const Word before = cell.value.exchange(word, std_order(O));
    wake_sleepers(lot_, domain_->announcements, cell.value, cell.sleepers);
    return before;
  }

  template <Order O>
  Word fetch_add(Cell& cell, Word delta, OrderTag<O>, Site = Site::here()) noexcept {
    const Word before = cell.value.fetch_add(delta, std_order(O));
    wake_sleepers(lot_, domain_->announcements, cell.value, cell.sleepers);
    return before;
  }

  template <Order O>
  bool compare_exchange(Cell& cell, Word& expected, Word desired, OrderTag<O>,
                        Site = Site::here()) noexcept {
    if (!cell.value.compare_exchange_strong(expected, desired, std_order(O), failure_order(O))) {
      return false;
    }
    wake_sleepers(lot_, domain_->announcements, cell.value, cell.sleepers);
    return true;
  }

  template <class Pred, Order O>
  bool await(Cell& cell, Pred pred, OrderTag<O> order, Awaited awaited = Awaited::anyone,
             Site = Site::here()) noexcept {
    if (awaited == Awaited::partner) hold_reads();
    for (int polls = fast_polls_;; relax()) {
      if (pred(cell.value.load(std_order(O)))) return true;
      if (--polls == 0) break;
    }
    return await_slowly(cell, pred, order, awaited);
  }

  /// Polls whole passes over the cells not yet ready, with independent relaxed loads, so that their
  /// misses overlap even where an acquire load orders the loads after it; the acquiring reads
  /// follow, and hit.
  template <class Pred, Order O>
  bool await_all(CellSet<Hardware> cells, Pred pred, OrderTag<O> order,
                 Site = Site::here()) noexcept {
    std::size_t ready = 0;
    for (int polls = fast_polls_;; relax()) {
      ready = skip_ready(cells, ready, pred);
      if (ready == cells.size()) return acquire_all(cells, order);
      if (--polls == 0) break;
    }
    return await_all_slowly(cells, ready, pred, order);
  }

  /// An index into `cells`, the first ready one at or after `from`, wrapping; no_cell when it gave
  /// up.
  template <class Pred, Order O>
  std::size_t await_any(CellSet<Hardware> cells, Pred pred, OrderTag<O> order, std::size_t from = 0,
                        Site = Site::here()) noexcept {
    for (int polls = fast_polls_;; relax()) {
      if (const std::size_t found = find_ready(cells, pred, order, from); found != no_cell)
        return found;
      if (--polls == 0) break;
    }
    return await_any_slowly(cells, pred, order, from);
  }

  template <class T>
  T read(const Plain<T>& plain, Site = Site::here()) noexcept {
    return plain.value;
  }
  template <class T>
  void write(Plain<T>& plain, T value, Site = Site::here()) noexcept {
    plain.value = value;
  }

  /// On the PU whose number the kernel gives, modulo `ranks`: with more PUs, some share a line.
  /// Nothing but the store of a line that stays in this PU's cache. Where waits spin first, which
  /// the answer does not change, not even that: with few ranks the line would be other PUs', too.
  Awaited count_in_on_pu(const auto& cells, unsigned ranks, Word episode) noexcept {
    if (policy().spin_ns > 0) return Awaited::anyone;
    Atom& here = cells.of(static_cast<unsigned>(std::max(0, sched_getcpu())) % ranks, 0).value;
    PuCount count(here.load(std::memory_order_relaxed));
    const bool all_here = count.count_in(episode);
    here.store(count.word(), std::memory_order_relaxed);
    return all_here ? Awaited::other_pus : Awaited::anyone;
  }

  Word pu() noexcept { return pu_.now(); }

  std::span<const Word> compose(std::span<const Word> pus) noexcept {
    if (hooks_.compose == nullptr) return {};
    return hooks_.compose(hooks_.context, pus);
  }

  /// Where it is not known to gain, nothing: alone, without hold_reads(), it loses when lines are
  /// fast.
  static void expect_store([[maybe_unused]] const Cell& cell) noexcept {
#if defined(__x86_64__)
    fetch_to_write(&cell);
#endif
  }

  bool all_arrived() noexcept { return hooks_.completion == nullptr || complete(); }

 protected:
  using Next = WaitStep;
  /// On an EPYC a poll with its pause takes 32 ns, a look at the clock 28: a thirtieth of these.
  static constexpr unsigned polls_per_clock = 32;

  /// One wait that the first looks have not ended.
  class Wait {
   public:
    Wait(Hardware& port, Awaited awaited) noexcept;
    ~Wait();
    Wait(const Wait&) = delete;
    Next next() noexcept {
      if (spins_ && (++polls_ % polls_per_clock) != 0) {
        relax();
        return Next::look;
      }
      return step();
    }

   private:
    Next step() noexcept;
    void begin(std::int64_t now) noexcept;
    void yield() noexcept;
    /// Whether its time is up, so long ago.
    bool is_late(std::int64_t late_ns) const noexcept;

    Hardware& port_;
    unsigned polls_ = 0;
    unsigned yields_ = 0;         ///< since the clock was last read
    unsigned yields_unseen_ = 0;  ///< until it is read again
    Awaited awaited_;
    bool spins_;
    bool began_ = false;  ///< for patience_
    bool slept_ = false;
  };

 private:
  /// The first index at or after `ready` whose cell is not. Four loads at a time, none waiting for
  /// another's test.
  static std::size_t skip_ready(CellSet<Hardware> cells, std::size_t ready, auto pred) noexcept {
    const auto peek = [&](std::size_t i) {
      return cells[i]->value.load(std::memory_order_relaxed);
    };
    while (ready + 4 <= cells.size()) {
      const Word a = peek(ready);
      const Word b = peek(ready + 1);
      const Word c = peek(ready + 2);
      const Word d = peek(ready + 3);
      if (int(pred(a)) + int(pred(b)) + int(pred(c)) + int(pred(d)) != 4) break;
      ready += 4;
    }
    while (ready < cells.size() && pred(peek(ready))) ++ready;
    return ready;
  }

  template <Order O>
  static bool acquire_all(CellSet<Hardware> cells, OrderTag<O>) noexcept {
    if constexpr (O == Order::acquire) {
      for (const Cell* cell : cells) static_cast<void>(cell->value.load(std::memory_order_acquire));
    }
    return true;
  }

  template <class Pred, Order O>
  static std::size_t find_ready(CellSet<Hardware> cells, Pred pred, OrderTag<O>,
                                std::size_t from) noexcept {
    for (std::size_t n = 0, i = from; n < cells.size(); ++n, i = i + 1 < cells.size() ? i + 1 : 0) {
      if (pred(cells[i]->value.load(std_order(O)))) return i;
    }
    return no_cell;
  }

  template <class Pred, Order O>
  [[gnu::noinline]] bool await_slowly(Cell& cell, Pred pred, OrderTag<O>,
                                      Awaited awaited) noexcept {
    Wait wait(*this, awaited);
    for (;;) {
      if (pred(cell.value.load(std_order(O)))) return true;
      switch (wait.next()) {
        case Next::look:
          break;
        case Next::sleep:
          sleep_on(lot_, domain_->announcements, cell.value, cell.sleepers, pred);
          break;
        case Next::give_up:
          return false;
      }
    }
  }

  template <class Pred, Order O>
  [[gnu::noinline]] bool await_all_slowly(CellSet<Hardware> cells, std::size_t ready, Pred pred,
                                          OrderTag<O> order) noexcept {
    Wait wait(*this, Awaited::anyone);
    for (;;) {
      ready = skip_ready(cells, ready, pred);
      if (ready == cells.size()) return acquire_all(cells, order);
      switch (wait.next()) {
        case Next::look:
          break;
        case Next::sleep:  // on the first that is not ready: all have to become so
          sleep_on(lot_, domain_->announcements, cells[ready]->value, cells[ready]->sleepers, pred);
          break;
        case Next::give_up:
          return false;
      }
    }
  }

  template <class Pred, Order O>
  [[gnu::noinline]] std::size_t await_any_slowly(CellSet<Hardware> cells, Pred pred,
                                                 OrderTag<O> order, std::size_t from) noexcept {
    Wait wait(*this, Awaited::anyone);
    for (;;) {
      if (const std::size_t found = find_ready(cells, pred, order, from); found != no_cell)
        return found;
      switch (wait.next()) {
        case Next::look:
          break;
        case Next::sleep:
          sleep_on_bell(lot_, domain_->announcements,
                        [&] { return find_ready(cells, pred, relaxed, from) != no_cell; });
          break;
        case Next::give_up:
          return no_cell;
      }
    }
  }

  /// Reads go after what stands before. One that runs ahead of the store to a partner takes back to
  /// here, unchanged, the line that the partner has fetched to write it.
  static void hold_reads() noexcept {
#if defined(__x86_64__)
    asm volatile("lfence" ::: "memory");
#endif
  }

  bool complete() noexcept;

  Domain* domain_;
  int fast_polls_ = 1;  ///< 1 or more
  unsigned rank_;
  FutexLot lot_;
  Hooks hooks_;
  std::int64_t deadline_ns_ = WaitPolicy::forever;
  Patience patience_;
  CurrentPu pu_;
  // By atomic_ref, since ports are copied.
  mutable Patience::Stay stay_ = Patience::Stay::whole;
  mutable Word slept_ = 0;
};

static_assert(Machine<Hardware>);

}  // namespace muster
