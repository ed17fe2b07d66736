// SPDX-License-Identifier: BSD-3-Clause
// Threads that exclude each other, and that wait until they are called: what lock/crew.hpp and
// lock/numbers.hpp need of hardware.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "machine/hardware.hpp"

namespace muster {

struct Mutual : PlainAtoms {
  using Mutex = std::mutex;
  using Signal = std::condition_variable;

  template <class Body>
  static auto within(Mutex& mutex, Body body) {
    const std::scoped_lock lock(mutex);
    return body();
  }
  // By who has the mutex.
  static void wait(Signal& signal, Mutex& mutex) {
    std::unique_lock lock(mutex, std::adopt_lock);
    signal.wait(lock);
    lock.release();
  }
  static void wait_for(Signal& signal, Mutex& mutex, std::chrono::microseconds time) {
    std::unique_lock lock(mutex, std::adopt_lock);
    signal.wait_for(lock, time);
    lock.release();
  }
  static void call_one(Signal& signal) noexcept { signal.notify_one(); }
  static void call_all(Signal& signal) noexcept { signal.notify_all(); }
};

}  // namespace muster
