// SPDX-License-Identifier: BSD-3-Clause
// For clang's -Wthread-safety: all right as it is; with FORGETS, `count` is touched unguarded.
#include <muster/mutex.hpp>

static muster::mutex guard;
static int count __attribute__((guarded_by(guard)));

int next() {
#ifndef FORGETS
  guard.lock();
  const int value = ++count;
  guard.unlock();
  return value;
#else
  return ++count;
#endif
}
