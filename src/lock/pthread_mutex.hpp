// SPDX-License-Identifier: BSD-3-Clause
// The C library's mutex, to compare with, between the threads of one process.
//
// Cost: two atomic updates while uncontended; a waiter sleeps in the kernel at once.
#pragma once

#include <pthread.h>

#include "lock/shape.hpp"

namespace muster::locks {

class PthreadMutex {
 public:
  static constexpr Traits traits{"pthread-mutex", Style::direct, false,
                                 "two while it changes hands, and a context switch",
                                 "the C library's"};

  PthreadMutex() = default;
  ~PthreadMutex() { pthread_mutex_destroy(&mutex_); }
  PthreadMutex(const PthreadMutex&) = delete;
  PthreadMutex& operator=(const PthreadMutex&) = delete;

  void acquire() { pthread_mutex_lock(&mutex_); }
  bool try_acquire() { return pthread_mutex_trylock(&mutex_) == 0; }
  void release() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace muster::locks
