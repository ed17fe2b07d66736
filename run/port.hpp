// SPDX-License-Identifier: BSD-3-Clause
// The machine of the preload: what src/lock/parking*.hpp ask for, on futexes, with the words of a
// mutex inside of pthread_mutex_t and those of a waiting thread in its record.
#pragma once

#include <cstddef>
#include <new>

#include "machine/hardware.hpp"
#include "run/record.hpp"
#include "wait/linger.hpp"

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
      constexpr std::size_t at[] = {0, 12, 20, 24, 28, 32, 36};
      static_assert(offsetof(pthread_mutex_t, __data.__kind) == 16);
      static_assert(sizeof(pthread_mutex_t) >= 40);
      return *std::launder(reinterpret_cast<Cell*>(bytes_ + at[index]));
    }
    Cell& of(unsigned number, unsigned index) const { return record(number).cells[index]; }

   private:
    std::byte* bytes_;
  };

  /// The record that counts its sleeps: none for who does not wait.
  explicit Port(unsigned number = 0) : number_(number) {}
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

  /// Seldom: a line that is looked at has to come back to who writes it.
  template <class Pred>
  bool poll(Cell& cell, Pred pred) {
    if (pred(cell.load(std::memory_order_relaxed))) return true;
    if (is_alone()) return false;
    for (unsigned look = 0; look < looks_max; ++look) {
      for (unsigned pauses = 0; pauses < 1U << look; ++pauses) relax();
      if (pred(cell.load(std::memory_order_relaxed))) return true;
    }
    return false;
  }

  bool is_overdue() {
    const std::int64_t now_ns = clock_ns();
    if (asked_ns_ == 0) asked_ns_ = now_ns;
    return now_ns - asked_ns_ > overdue_ns;
  }

  bool park(Cell& cell, Word seen);
  void unpark(Cell& cell);

 private:
  /// Half a microsecond or so: eight threads whose section moves ten lines lose a fifth with less,
  /// and two beside other programs lose a fifth with four times as much.
  static constexpr unsigned looks_max = 5;
  /// For how long the first one is passed over: twenty times what its waking up takes, so that it
  /// mostly has the mutex sooner, and a hand-over while it sleeps costs a twentieth at most.
  static constexpr std::int64_t overdue_ns = 1'000'000;

  static std::int64_t clock_ns();

  std::int64_t asked_ns_ = 0;
  unsigned number_;
  clockid_t clock_ = CLOCK_MONOTONIC;
  const timespec* until_ = nullptr;
};

}  // namespace muster::run
