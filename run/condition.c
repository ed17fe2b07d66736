/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Condition variables stay the C library's, with all that it knows of clocks, cancellation and
 * destruction; but it would give and take its own kind of mutex. So who waits with a mutex of ours
 * waits with another one of the C library's, a gate, found by the condition's address:
 *
 *   wait    close the gate, give the mutex; the C library opens the gate once the waiter is counted
 *   signal  pass through the gate, then signal
 *
 * Who signals after it had the mutex finds the gate closed by everybody who has given the mutex
 * before and does not count yet: no wake-up is lost. Conditions may share a gate: it is held for
 * moments only, and by nobody who waits for anything else.
 */
#include <errno.h>
#include <stdatomic.h>

#include "run/preload.h"

enum { gates_max = 256 };
typedef struct gate {
  _Alignas(128) pthread_mutex_t mutex;
  atomic_uint waiters; /* at its conditions; who gives its mutex afterwards shows it, too */
} gate;
static gate gates[gates_max];

static gate* gate_of(const pthread_cond_t* cond) {
  const uintptr_t bits = (uintptr_t)cond / _Alignof(pthread_cond_t);
  return &gates[(bits ^ bits >> 8 ^ bits >> 16) % gates_max];
}

typedef struct waiter {
  gate* through;
  pthread_mutex_t* mutex;
} waiter;

/* Also where the thread is cancelled: its handlers expect to have the mutex. */
static void come_back(void* argument) {
  const waiter* const self = argument;
  theirs.mutex_unlock(&self->through->mutex);
  atomic_fetch_sub_explicit(&self->through->waiters, 1, memory_order_relaxed);
  run_mutex_lock(self->mutex);
}

enum how { FOREVER, UNTIL, UNTIL_BY_CLOCK };

/* A deadline that is none is found out before the mutex is given. */
static int wait_for(pthread_cond_t* cond, pthread_mutex_t* mutex, enum how how, clockid_t clock,
                    const struct timespec* until) {
  if (how != FOREVER && !run_is_time(until)) return EINVAL;
  if (how == UNTIL_BY_CLOCK && !run_is_clock(clock)) return EINVAL;
  waiter self = {gate_of(cond), mutex};
  atomic_fetch_add_explicit(&self.through->waiters, 1, memory_order_relaxed);
  theirs.mutex_lock(&self.through->mutex);
  int error = run_mutex_unlock(mutex);
  if (error != 0) {
    theirs.mutex_unlock(&self.through->mutex);
    atomic_fetch_sub_explicit(&self.through->waiters, 1, memory_order_relaxed);
    return error;
  }
  run_count_one(RUN_WAITS);
  pthread_cleanup_push(come_back, &self);
  switch (how) {
    case FOREVER:
      error = theirs.cond_wait(cond, &self.through->mutex);
      break;
    case UNTIL:
      error = theirs.cond_timedwait(cond, &self.through->mutex, until);
      break;
    case UNTIL_BY_CLOCK:
      error = theirs.cond_clockwait(cond, &self.through->mutex, clock, until);
      break;
  }
  pthread_cleanup_pop(1);
  return error;
}

static void count_wait(void) {
  if (settings.mutex != RUN_MUTEX_THEIRS) run_count_one(RUN_WAITS);
}

int run_cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex) {
  if (run_is_ours(mutex)) return wait_for(cond, mutex, FOREVER, 0, NULL);
  count_wait();
  return theirs.cond_wait(cond, mutex);
}

int run_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex, const struct timespec* until) {
  if (run_is_ours(mutex)) return wait_for(cond, mutex, UNTIL, 0, until);
  count_wait();
  return theirs.cond_timedwait(cond, mutex, until);
}

int run_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                       const struct timespec* until) {
  if (run_is_ours(mutex)) return wait_for(cond, mutex, UNTIL_BY_CLOCK, clock, until);
  count_wait();
  return theirs.cond_clockwait(cond, mutex, clock, until);
}

static void pass_through_gate(const pthread_cond_t* cond) {
  gate* const its = gate_of(cond);
  if (atomic_load_explicit(&its->waiters, memory_order_relaxed) == 0) return;
  theirs.mutex_lock(&its->mutex);
  theirs.mutex_unlock(&its->mutex);
}

int run_cond_signal(pthread_cond_t* cond) {
  pass_through_gate(cond);
  return theirs.cond_signal(cond);
}

int run_cond_broadcast(pthread_cond_t* cond) {
  pass_through_gate(cond);
  return theirs.cond_broadcast(cond);
}

/* In the child nobody waits. */
void run_conditions_after_fork(void) {
  for (int i = 0; i < gates_max; ++i) {
    gates[i].mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    atomic_store_explicit(&gates[i].waiters, 0, memory_order_relaxed);
  }
}
