// SPDX-License-Identifier: BSD-3-Clause
// muster::mutex, where std::mutex or std::timed_mutex was (mutex.h says what it does). C++17.
//
//   muster::mutex mutex;
//   std::lock_guard guard(mutex);       // unique_lock, scoped_lock, condition_variable_any as well
#pragma once

#include <chrono>

#include "muster/muster.hpp"
#include "muster/mutex.h"

#if __cplusplus >= 201703L  // else muster.hpp has said so

namespace muster {

/// TimedLockable; 28 bytes, constant-initialised, trivially destructible. What clang's thread
/// safety analysis (-Wthread-safety) takes for a capability.
class MUSTER_THREAD_ANNOTATION(capability("mutex")) mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  void lock() noexcept MUSTER_THREAD_ANNOTATION(acquire_capability()) {
    muster_mutex_lock(&words_);
    taken();
  }
  bool try_lock() noexcept MUSTER_THREAD_ANNOTATION(try_acquire_capability(true)) {
    return muster_mutex_trylock(&words_) != 0 && taken();
  }
  void unlock() noexcept MUSTER_THREAD_ANNOTATION(release_capability()) {
#ifdef MUSTER_TELLS_TSAN
    __tsan_release(&words_);
#endif
    muster_mutex_unlock(&words_);
  }

  /// Any duration will do: hours::max() is for ever; zero or less is over at once.
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& time)
      MUSTER_THREAD_ANNOTATION(try_acquire_capability(true)) {
    return muster_mutex_timedlock(&words_, detail::bounded(time).count()) == MUSTER_OK && taken();
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& time)
      MUSTER_THREAD_ANNOTATION(try_acquire_capability(true)) {
    return detail::try_until(*this, time);
  }

  using native_handle_type = muster_mutex*;
  native_handle_type native_handle() noexcept { return &words_; }

 private:
  /// The library is built without ThreadSanitizer: it sees neither who waited nor for whom.
  bool taken() noexcept {
#ifdef MUSTER_TELLS_TSAN
    __tsan_acquire(&words_);
#endif
    return true;
  }

  muster_mutex words_ = MUSTER_MUTEX_INITIALIZER;
};

}  // namespace muster

#endif
