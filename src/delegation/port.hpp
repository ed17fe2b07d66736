// SPDX-License-Identifier: BSD-3-Clause
// Hardware as locks use it: its waits between two cells, its short pauses, and the memory in which
// slots lie beside their requests.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "delegation/cpus.hpp"
#include "delegation/section.hpp"
#include "delegation/thread.hpp"
#include "lock/doze.hpp"
#include "machine/hardware.hpp"
#include "machine/lock_machine.hpp"
#include "wait/asking.hpp"

namespace muster::delegation {

/// No two participants' words on one line, nor on two that a prefetcher fetches together.
inline constexpr std::size_t line_bytes = 128;

class Port : public Hardware {
 public:
  Port(Domain& domain, unsigned seat)
      : Hardware(domain, seat, WaitPolicy::dedicated(), false, false),
        announcements_(domain.announcements) {}

  /// Clients are seats: one that nobody has, with nothing pending, has no request.
  static Word next_client(Word from, Word end) noexcept {
    SeatMachine machine;
    return locks::Seats<SeatMachine>::next(machine, from, end);
  }

  static void expect_load(const Cell& cell) noexcept { __builtin_prefetch(&cell); }

  /// More threads use locks than there are CPUs, though perhaps not just now: by the last count,
  /// since who has a lock is not to count for milliseconds.
  static bool is_crowded() noexcept {
    return seated_threads.load(std::memory_order_relaxed) > cpus_last_counted();
  }
  /// Likewise, by who is to wait: it counts anew before it says so.
  static bool finds_crowd() noexcept {
    return is_crowded() && seated_threads.load(std::memory_order_relaxed) > cpus_of_process();
  }
  /// `place`: a CPU.
  [[gnu::noinline]] bool is_near(Word place) const noexcept;
  using Hardware::Next;
  using Hardware::polls_per_clock;
  using Hardware::Wait;

  template <class Pred, Order O>
  bool await(Cell& cell, Pred pred, OrderTag<O> order, Awaited awaited = Awaited::anyone,
             Site site = Site::here()) noexcept {
    if (pred(cell.value.load(std_order(O)))) return true;
    if (awaited == Awaited::combiner) {
      // In a crowd the next look comes after a yield, and a combiner may be at it now.
      for (unsigned polls = finds_crowd() ? polls_per_clock : 0; polls > 0; --polls, relax()) {
        if (pred(cell.value.load(std_order(O)))) return true;
      }
      for (unsigned looks = Asking::patience; looks > 0; --looks) {
        back_off();
        if (pred(cell.value.load(std_order(O)))) return true;
      }
    }
    follow_crowd();
    return Hardware::await(cell, pred, order, awaited, site);
  }

  /// One of the others may need this CPU. Where a quota limits their time each yield takes some of
  /// it: then a nap instead, so long that the wake-ups of all threads take no more than that time.
  /// With half a CPU two to eight threads do 1.1 to 2.2 times as many sections so.
  static void give_way() noexcept;

  static std::int64_t time_ns() noexcept { return now_ns(); }
  static void linger(unsigned turns) noexcept {
    const std::int64_t until_ns = now_ns() + turns * linger_turn_ns;
    do {
      relax();
    } while (now_ns() < until_ns);
  }

  /// Who waits for a lock sleeps elsewhere, so nobody is to be woken.
  static bool take_held(Cell& held) noexcept {
    Word free = 0;
    return held.value.compare_exchange_strong(free, 1, std::memory_order_acquire,
                                              std::memory_order_relaxed);
  }
  static void give_held(Cell& held) noexcept { held.value.store(0, std::memory_order_release); }

  static void store_unawaited(Cell& cell, Word word) noexcept {
    cell.value.store(word, std::memory_order_relaxed);
  }
  template <Order O>
  static Word exchange_unawaited(Cell& cell, Word word, OrderTag<O>) noexcept {
    return cell.value.exchange(word, std_order(O));
  }
  template <Order O>
  [[gnu::always_inline]] void store(Cell& cell, Word word, OrderTag<O>,
                                    Site = Site::here()) noexcept {
    cell.value.store(word, std_order(O));
    wake(cell);
  }
  template <Order O>
  [[gnu::always_inline]] Word exchange(Cell& cell, Word word, OrderTag<O>,
                                       Site = Site::here()) noexcept {
    const Word before = cell.value.exchange(word, std_order(O));
    wake(cell);
    return before;
  }
  template <Order O>
  [[gnu::always_inline]] bool compare_exchange(Cell& cell, Word& expected, Word desired,
                                               OrderTag<O>, Site = Site::here()) noexcept {
    if (!cell.value.compare_exchange_strong(expected, desired, std_order(O), failure_order(O))) {
      return false;
    }
    wake(cell);
    return true;
  }

  /// Tells nobody.
  [[gnu::noinline]] int await_either(Cell& own, const Cell& other, OrderTag<Order::acquire>,
                                     Awaited awaited, Site = Site::here()) noexcept;
  /// The line of `other` is its holder's to write: it is read once after a microsecond, since most
  /// sections are short, and then seldom.
  int await_either(Cell& own, const Cell& other, OrderTag<Order::acquire>, Cell& wanted,
                   Cell& dozing, const Expectation<Cell>& expected) noexcept {
    if (poll(own, polls_per_clock)) return 0;
    // If both are 0, the request is executed.
    if (!expected.soon && is_free(other)) return poll(own, 1) ? 0 : 1;
    return ask(&own, other, wanted, dozing, expected);
  }

  /// Until the lock is free, of which no request is pending: who has it lets one in that waits
  /// here.
  bool wait_for_turn(const Cell& held, Cell& wanted, Cell& dozing, unsigned lost) noexcept {
    static_cast<void>(
        ask(nullptr, held, wanted, dozing, {.soon = false, .answer = false, .lost = lost}));
    return true;
  }
  static void clear_wanted(Cell& wanted, const Cell& dozing) noexcept {
    Doze::clear_wanted(FutexLot(), wanted.value, dozing.sleepers);
  }
  /// Unless it is set: who has the lock looks when it gives it back, though nobody is to be let in.
  /// By a section of the lock, that leaves something to see to.
  static void set_by_section(Cell& wanted) noexcept {
    Word none = 0;
    wanted.value.compare_exchange_strong(none, locks::by_section, std::memory_order_relaxed);
  }
  static bool is_by_section(const Cell& wanted) noexcept {
    return wanted.value.load(std::memory_order_relaxed) == locks::by_section;
  }
  static bool is_slept_on(const Cell& dozing) noexcept {
    return FutexLot::peek(dozing.sleepers) != 0;
  }
  static bool is_dozing(const Cell& dozing) noexcept {
    return Doze::is_dozing(FutexLot(), dozing.value);
  }
  static bool take_note(Cell& dozing) noexcept { return Doze::take_note(FutexLot(), dozing.value); }
  static void set_dozing(Cell& dozing) noexcept { Doze::set_dozing(FutexLot(), dozing.value); }
  static void rouse(Cell& entry, Word request) noexcept {
    Doze::rouse(FutexLot(false), entry.value, entry.sleepers, request);
  }
  static bool wake_one(const Cell& dozing) noexcept {
    return Doze::wake_one(FutexLot(false), dozing.value, dozing.sleepers);
  }
  /// And until `held` is taken, by one of those that wait; not for long.
  static void let_one_in(const Cell& held, const Cell& dozing) noexcept;

  /// At least so long, for tests: then whoever has the lock has to wake who sleeps.
  static void lengthen_sleeps(std::int64_t ns) noexcept { shortest_sleep_ns = ns; }

  /// True if `own` becomes 0 within so many polls.
  static bool poll(const Cell& own, unsigned polls) noexcept {
    for (; polls > 0; --polls) {
      if (own.value.load(std::memory_order_acquire) == 0) return true;
      relax();
    }
    return false;
  }

  /// True if `cell` becomes 0 while a client would be patient (Asking).
  static bool is_soon_free(const Cell& cell) noexcept;

 private:
  using Doze = locks::Doze<FutexLot>;
  static inline std::atomic<std::int64_t> shortest_sleep_ns{0};
  /// Before a wait. Where more threads use locks than there are CPUs whoever is awaited may need
  /// this one.
  void follow_crowd() noexcept {
    if (finds_crowd() == (policy().spin_ns != 0)) change_policy();
  }
  [[gnu::noinline]] void change_policy() noexcept;
  /// Between two looks for a combiner's answer: each look takes the lines from whoever could run
  /// many sections in a row. Without this pause two threads on two CPUs execute 0.2 to 0.9 times as
  /// many.
  [[gnu::noinline]] static void back_off() noexcept;
  static FutexLot lot_for_long() noexcept;
  struct Pace;

  static bool is_free(const Cell& cell) noexcept {
    return cell.value.load(std::memory_order_acquire) == 0;
  }
  /// Until `own`, if there is one, is 0 (returns 0), or `held` is (returns 1).
  [[gnu::noinline]] int ask(Cell* own, const Cell& held, Cell& wanted, Cell& dozing,
                            const Expectation<Cell>& expected) noexcept;
  /// As the machine's own changes do, on a shorter way where nobody sleeps.
  [[gnu::always_inline]] void wake(Cell& cell) noexcept {
    FutexLot::light_fence();
    if (FutexLot::peek(announcements_.sleepers) != 0) [[unlikely]]
      wake_sleepers_of(cell);
  }
  [[gnu::noinline]] void wake_sleepers_of(Cell& cell) noexcept;

  bool asked_ = false;  ///< Asking::asked()
  Announcements<Atom>& announcements_;
};

static_assert(LockMachine<Port>);

/// Cells at places known beforehand: each global one on a line of its own, and a slot's `spacing`
/// bytes apart, `stride` bytes from one slot to the next.
template <std::size_t stride, std::size_t spacing>
class FixedCells {
 public:
  using Cell = Hardware::Cell;

  FixedCells(std::byte* global, std::byte* slots) noexcept : global_(global), slots_(slots) {}
  Cell& global(unsigned index) const noexcept { return at(global_ + index * line_bytes); }
  Cell& of(unsigned slot, unsigned index) const noexcept {
    // From the slot on: two cells of one slot need its place only once.
    return at(reinterpret_cast<std::byte*>(&at(slots_ + slot * stride)) + index * spacing);
  }
  std::byte* slots() const noexcept { return slots_; }

 private:
  static Cell& at(std::byte* where) noexcept {
    return *std::launder(reinterpret_cast<Cell*>(where));
  }
  std::byte* global_;
  std::byte* slots_;
};

/// Address space, zero at first, of which only what is touched costs memory.
struct Unmap {
  std::size_t bytes;
  void operator()(std::byte* memory) const noexcept;
};
using Reserved = std::unique_ptr<std::byte[], Unmap>;
Reserved reserve(std::size_t bytes);  ///< throws Error(no_memory)

/// Memory of a lock, or of a station: the machine's domain on a line, global cells, slots.
template <class Cells>
class SlotMemory {
 public:
  SlotMemory(unsigned globals, std::size_t slots_bytes)
      : bytes_(reserve((1 + globals) * line_bytes + slots_bytes)),
        cells_(bytes_.get() + line_bytes, bytes_.get() + (1 + globals) * line_bytes) {
    static_assert(sizeof(Hardware::Domain) <= line_bytes);
  }
  Hardware::Domain& domain() const { return *reinterpret_cast<Hardware::Domain*>(bytes_.get()); }
  const Cells& cells() const { return cells_; }

 private:
  Reserved bytes_;
  Cells cells_;
};

/// Where requests are, each beside its flag: groups of `1 << group_bits` of them, `stride` bytes
/// apart, `spacing` within. `errors_at` in each group is what its sections left in errno: best
/// on a line of its own, which is seldom written and so in all caches.
struct BoardShape {
  std::size_t stride;
  std::size_t spacing;
  unsigned group_bits;
  std::size_t errors_at;
};

template <BoardShape shape>
struct Board {
  std::byte* first;  ///< request

  Section& at(unsigned slot) const noexcept {
    return *reinterpret_cast<Section*>(group(slot) + within(slot) * shape.spacing);
  }
  /// What was copied of its argument, in rings.
  CopiedWord* copy(unsigned slot) const noexcept {
    return reinterpret_cast<CopiedWord*>(&at(slot) + 1);
  }
  /// errno after the slot's request was executed; 0: untouched.
  int& error(unsigned slot) const noexcept {
    return *reinterpret_cast<int*>(group(slot) + shape.errors_at + within(slot) * sizeof(int));
  }

  /// Whether that is where a request of the slot's client leaves errno.
  bool is_of_client(const int* error, unsigned slot) const noexcept {
    return reinterpret_cast<std::uintptr_t>(error) - reinterpret_cast<std::uintptr_t>(group(slot)) <
           shape.stride;
  }

 private:
  std::byte* group(unsigned slot) const noexcept {
    return first + (slot >> shape.group_bits) * shape.stride;
  }
  unsigned within(unsigned slot) const noexcept { return slot & ((1U << shape.group_bits) - 1); }
};

/// State of a lock, or of a station, for each seat: made when the seat first comes.
template <class State>
class PerSeat {
 public:
  ~PerSeat() {
    for (Line* line = last_; line != nullptr;) delete std::exchange(line, line->before);
    for (const auto& chunk : chunks_) delete chunk.load();
  }

  /// The seat's, made by `make()` if it is its first time; by the seat's thread.
  template <class Make = State (*)()>
  State& of(
      unsigned seat, Make make = [] { return State{}; }) {
    State* const state = find(seat);
    if (state != nullptr) [[likely]]
      return *state;
    return add(seat, make);
  }

  /// Null before that.
  State* find(unsigned seat) const noexcept {
    Chunk* const chunk = chunks_[seat / chunk_size].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    Line* const line = chunk->lines[seat % chunk_size].load(std::memory_order_acquire);
    return line == nullptr ? nullptr : &line->state;
  }

  void for_each(auto fn) const {
    Line* line = last_.load(std::memory_order_acquire);  // pairs with add()
    for (; line != nullptr; line = line->before) fn(line->state);
  }

 private:
  static constexpr unsigned chunk_size = 64;
  /// Written by its seat's thread, and hardly by others.
  struct alignas(line_bytes) Line {
    State state;
    Line* before;
  };
  struct Chunk {
    std::atomic<Line*> lines[chunk_size] = {};
  };

  [[gnu::noinline]] State& add(unsigned seat, auto& make) {
    std::atomic<Chunk*>& place = chunks_[seat / chunk_size];
    Chunk* chunk = place.load(std::memory_order_acquire);
    if (chunk == nullptr) {
      auto fresh = std::make_unique<Chunk>();
      if (place.compare_exchange_strong(chunk, fresh.get(), std::memory_order_acq_rel)) {
        chunk = fresh.release();
      }
    }
    auto* const line = new Line{make(), last_.load(std::memory_order_relaxed)};
    while (!last_.compare_exchange_weak(line->before, line, std::memory_order_release)) continue;
    chunk->lines[seat % chunk_size].store(line, std::memory_order_release);
    return line->state;
  }

  std::atomic<Line*> last_{nullptr};
  std::atomic<Chunk*> chunks_[seats_max / chunk_size] = {};
};

}  // namespace muster::delegation
