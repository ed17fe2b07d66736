// SPDX-License-Identifier: BSD-3-Clause
// For clang's -Wthread-safety: all right as it is; with FORGETS, what is guarded is touched so.
#include <muster/lock.hpp>
#include <muster/mutex.hpp>

static muster::mutex guard;
static int count __attribute__((guarded_by(guard)));
static muster::lock lock;
static int executed __attribute__((guarded_by(lock)));

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

int next_guarded() {
#ifndef FORGETS
  const muster::guard scope(guard);
#endif
  return ++count;
}

int next_locked() {
#ifndef FORGETS
  const muster::guard scope(lock);
#endif
  return ++executed;
}

int read_beside_others() {
  return lock.execute_shared([] {
#ifndef FORGETS
    lock.assert_shared_held();
#endif
#ifdef WRITES
    ++executed;
#endif
    return executed + 0;
  });
}

int next_executed() {
  return lock.execute([] {
#ifndef FORGETS
    lock.assert_held();
#endif
    return ++executed;
  });
}
