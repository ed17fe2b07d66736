/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/attend.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "mpi/clock.h"
#include "mpi/pool.h"

static void (*progress)(void);

void attend_with(void (*progress_of_mpi)(void)) { progress = progress_of_mpi; }

int attend(void* waiting) {
  enum { steps_without = 16, sleep_ns = 200000, late_ns = 1000000 };
  enum { preempted_ns = 50000, look_ns = 10000, glance_ns = 1000, linger_ns = 200000, many = 8 };
  static atomic_long quickest_ns = LONG_MAX; /* that any thread has seen lately */
  slot* const at = waiting;
  if (++at->polls < steps_without) return 0;
  int64_t now = now_ns();
  const int64_t away = at->polls == steps_without ? late_ns : now - at->last_attended_ns;
  int64_t until = now;
  if (away > sleep_ns) {
    progress();
    now = now_ns();
    until = now + (away < late_ns ? look_ns : glance_ns);
  }
  do {
    const int64_t before = now;
    progress();
    now = now_ns();
    const long took = (long)(now - before);
    const long quickest = atomic_load_explicit(&quickest_ns, memory_order_relaxed);
    if (took < quickest) {
      atomic_store_explicit(&quickest_ns, took, memory_order_relaxed);
    } else if (took / many > quickest) {
      atomic_store_explicit(&quickest_ns, quickest + quickest / 64 + 1, memory_order_relaxed);
      const bool served = took < preempted_ns;
      at->expects_more = served && now - at->found_ns < late_ns;
      at->found_ns = served ? now : 0;
    }
  } while (now < until);
  at->last_attended_ns = now;
  return at->expects_more && now - at->found_ns < linger_ns;
}
