// SPDX-License-Identifier: BSD-3-Clause
// The C library's mutex, to compare with, and the one that survives the death of a process: in
// shared memory it is robust, and whoever comes after a holder that died is told.
//
// Cost: two atomic updates while uncontended; a waiter sleeps in the kernel at once.
//
// Invariants:
// 1. `damaged` is set, under the mutex, by the first to learn that a holder died; it stays set
//    until recover(): until then nobody enters.
#pragma once

#include <pthread.h>

#include <cerrno>

#include "lock/shape.hpp"
#include "machine/error.hpp"

namespace muster::locks {

class PthreadMutex {
 public:
  static constexpr Traits traits{"pthread-mutex", Style::direct, false,
                                 "two while it changes hands, and a context switch",
                                 "the C library's"};

  /// `shared`: it is in memory that several processes share.
  explicit PthreadMutex(bool shared = false) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (shared) {
      pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
      pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    }
    const int error = pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
    if (error != 0) throw Error(Status::system, "pthread_mutex_init: " + std::to_string(error));
  }
  ~PthreadMutex() { pthread_mutex_destroy(&mutex_); }
  PthreadMutex(const PthreadMutex&) = delete;
  PthreadMutex& operator=(const PthreadMutex&) = delete;

  /// False, and then the lock is not taken: a process died in a section.
  bool acquire() {
    if (acquire_anyway()) [[likely]]
      return true;
    release();
    return false;
  }
  /// Takes the lock whatever happened. False: a process died in a section, or might have.
  bool acquire_anyway() { return is_whole(pthread_mutex_lock(&mutex_)); }
  /// False: it is taken. `whole`, if it was not: what acquire_anyway() returns.
  bool try_acquire_anyway(bool& whole) {
    const int error = pthread_mutex_trylock(&mutex_);
    if (error == EBUSY) return false;
    whole = is_whole(error);
    return true;
  }
  void release() { pthread_mutex_unlock(&mutex_); }

  /// By whoever has the lock, and sets right what it protects.
  void make_whole() { damaged_ = false; }

 private:
  bool is_whole(int error) {
    if (error == EOWNERDEAD) {
      damaged_ = true;
      pthread_mutex_consistent(&mutex_);
    }
    return error == 0 && !damaged_;
  }

  pthread_mutex_t mutex_;
  bool damaged_ = false;
};

}  // namespace muster::locks
