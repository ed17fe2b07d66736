// SPDX-License-Identifier: BSD-3-Clause
// Threads that exclude each other, and that wait until they are called: what lock/crew.hpp,
// lock/numbers.hpp, lock/seats.hpp and lock/condition.hpp need of hardware.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "machine/hardware.hpp"

namespace muster {

struct Mutual : PlainAtoms {
  using Mutex = std::mutex;
  using Signal = std::condition_variable;
  template <class T>
  using Plain = Hardware::Plain<T>;

  static auto within(Mutex& mutex, auto body) {
    const std::scoped_lock lock(mutex);
    return body();
  }
  // By who has the mutex.
  static void wait(Signal& signal, Mutex& mutex) {
    std::unique_lock lock(mutex, std::adopt_lock);
    signal.wait(lock);
    lock.release();
  }
  /// False: it is `end_ns`.
  static bool wait_until(Signal& signal, Mutex& mutex, std::int64_t end_ns) {
    if (end_ns == WaitPolicy::forever) {
      wait(signal, mutex);
      return true;
    }
    std::unique_lock lock(mutex, std::adopt_lock);
    const std::chrono::steady_clock::time_point end{std::chrono::nanoseconds(end_ns)};
    const bool in_time = signal.wait_until(lock, end) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  template <class T>
  static T read(const Plain<T>& plain) {
    return plain.value;
  }
  template <class T>
  static void write(Plain<T>& plain, T value) {
    plain.value = value;
  }
  static void call_one(Signal& signal) noexcept { signal.notify_one(); }
  static void call_all(Signal& signal) noexcept { signal.notify_all(); }
};

}  // namespace muster
