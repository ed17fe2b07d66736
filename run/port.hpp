// SPDX-License-Identifier: BSD-3-Clause
// The machine of the preload: what src/lock/parking*.hpp ask for, on futexes, with the words of a
// mutex inside of pthread_mutex_t and those of a waiting thread in its record.
#pragma once

#include <cstddef>
#include <new>

#include "machine/hardware.hpp"
#include "run/record.hpp"

namespace muster::run {

class Port {
 public:
  using Cell = std::atomic<Word>;

  /// The C library keeps lock, count, owner, users, kind, spins and a list of robust mutexes in
  /// there; of ours, which are not robust, only the kind means to it what it did. A static
  /// initialiser leaves 0 in all others.
  class Cells {
   public:
    explicit Cells(pthread_mutex_t* mutex) : bytes_(reinterpret_cast<std::byte*>(mutex)) {}
    Cell& global(unsigned index) const {
      constexpr std::size_t at[] = {0, 12, 20, 24, 28, 32};
      static_assert(offsetof(pthread_mutex_t, __data.__kind) == 16);
      static_assert(sizeof(pthread_mutex_t) >= 36);
      return *std::launder(reinterpret_cast<Cell*>(bytes_ + at[index]));
    }
    Cell& of(unsigned number, unsigned index) const { return record(number).cells[index]; }

   private:
    std::byte* bytes_;
  };

  explicit Port(unsigned number) : number_(number) {}
  Port(unsigned number, clockid_t clock, const timespec* until)
      : number_(number), clock_(clock), until_(until) {}

  template <Order O>
  Word load(const Cell& cell, OrderTag<O>) {
    return cell.load(std_order(O));
  }
  template <Order O>
  void store(Cell& cell, Word word, OrderTag<O>) {
    cell.store(word, std_order(O));
  }
  template <Order O>
  Word exchange(Cell& cell, Word word, OrderTag<O>) {
    return cell.exchange(word, std_order(O));
  }
  template <Order O>
  bool compare_exchange(Cell& cell, Word& expected, Word desired, OrderTag<O>) {
    return cell.compare_exchange_strong(expected, desired, std_order(O), failure_order(O));
  }

  /// For what another thread is just about to do.
  template <class Pred, Order O>
  bool await(Cell& cell, Pred pred, OrderTag<O>) {
    for (unsigned looks = 0; !pred(cell.load(std_order(O))); ++looks) linger(looks);
    return true;
  }

  template <class Pred>
  bool poll(Cell& cell, Pred pred) {
    if (pred(cell.load(std::memory_order_relaxed))) return true;
    if (is_alone()) return false;
    const bool crowded = is_crowded();
    const std::int64_t end_ns = crowded ? 0 : clock_ns() + look_ns;
    for (;;) {
      for (unsigned looks = 0; looks < looks_in_a_row; ++looks) {
        relax();
        if (pred(cell.load(std::memory_order_relaxed))) return true;
      }
      if (crowded || clock_ns() > end_ns) return false;
    }
  }

  bool park(Cell& cell, Word seen);
  void unpark(Cell& cell);

 private:
  /// About what a sleep and a wake-up cost, with a CPU for everybody.
  static constexpr std::int64_t look_ns = 50'000;
  /// And with fewer CPUs: a microsecond or two.
  static constexpr unsigned looks_in_a_row = 32;

  static std::int64_t clock_ns();
  static void linger(unsigned looks);

  unsigned number_;
  clockid_t clock_ = CLOCK_MONOTONIC;
  const timespec* until_ = nullptr;
};

}  // namespace muster::run
