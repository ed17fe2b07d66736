// SPDX-License-Identifier: BSD-3-Clause
// The machine of the preload's mutexes: their words inside of pthread_mutex_t, those of a waiting
// thread in its record.
#pragma once

#include <cstddef>
#include <new>

#include "machine/parking_port.hpp"
#include "run/record.hpp"

namespace muster::run {

/// The C library keeps lock, count, owner, users, kind, spins and a list of robust mutexes in
/// there; of ours, which are not robust, only the kind means to it what it did. A static
/// initialiser leaves 0 in all others.
class MutexCells {
 public:
  explicit MutexCells(pthread_mutex_t* mutex) : bytes_(reinterpret_cast<std::byte*>(mutex)) {}
  std::atomic<Word>& global(unsigned index) const {
    constexpr std::size_t at[] = {0, 12, 20, 24, 28, 32, 36};
    static_assert(offsetof(pthread_mutex_t, __data.__kind) == 16);
    static_assert(sizeof(pthread_mutex_t) >= 40);
    return *std::launder(reinterpret_cast<std::atomic<Word>*>(bytes_ + at[index]));
  }
  std::atomic<Word>& of(unsigned number, unsigned index) const {
    return record(number).cells[index];
  }
  static bool is_alone() { return run::is_alone(); }

 private:
  std::byte* bytes_;
};

class Port : public ParkingPort<MutexCells> {
 public:
  /// The record that counts its sleeps: none for who does not wait.
  explicit Port(unsigned number = 0) : number_(number) {}
  Port(unsigned number, clockid_t clock, const timespec* until)
      : ParkingPort(clock, until), number_(number) {}

  bool park(Cell& cell, Word seen) {
    count(number_, RUN_SLEPT);
    return ParkingPort::park(cell, seen);
  }

 private:
  unsigned number_;
};

}  // namespace muster::run
