// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>

namespace muster {

/// The calling thread is not cancelled in here: that waits for its next cancellation point after.
/// As dear as an uncontended lock.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = 0;
};

}  // namespace muster
