/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/watch.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "mpi/clock.h"

enum { line = 128 };

typedef _Atomic int64_t number64;

/* Written by one rank. Nobody is two barriers ahead of a reader, so two times are enough. */
typedef struct coming {
  _Alignas(line) number64 at_ns[2];
} coming;

/* Before all others; only read. */
typedef struct head {
  _Alignas(line) counter_clock clock;
} head;

typedef struct counted {
  number64 waited_ns;
  number64 caused_ns;
  number64 last;
} counted;

/* Added to by whoever counts a barrier: hardly two at a time. */
typedef struct account {
  number64 own_ns;
  _Atomic uint64_t counted; /* the barrier that was counted last */
  counted by_rank[];
} account;

static size_t account_bytes(unsigned ranks) {
  const size_t bytes = sizeof(account) + ranks * sizeof(counted);
  return (bytes + line - 1) / line * line;
}

size_t watch_bytes(unsigned ranks) {
  return sizeof(head) + ranks * sizeof(coming) + account_bytes(ranks);
}

static const counter_clock* clock_of(const watch* of) {
  return &((const head*)(const void*)of)->clock;
}

static coming* coming_of(const watch* of, unsigned rank) {
  return (coming*)(void*)((head*)(void*)of + 1) + rank;
}

static account* account_of(const watch* of, unsigned ranks) {
  return (account*)(void*)(coming_of(of, 0) + ranks);
}

void watch_begin(watch* of, unsigned ranks) {
  memset((void*)of, 0, watch_bytes(ranks));
  *(head*)(void*)of = (head){.clock = counter_clock_made()};
}

static int64_t get(const number64* from) {
  return atomic_load_explicit(from, memory_order_relaxed);
}

static void add(number64* to, int64_t what) {
  atomic_fetch_add_explicit(to, what, memory_order_relaxed);
}

int64_t watch_come(watch* of, unsigned rank, uint64_t number) {
  const int64_t now = counter_ns(clock_of(of));
  /* Relaxed: the barrier orders it before whoever leaves. */
  atomic_store_explicit(&coming_of(of, rank)->at_ns[number % 2], now, memory_order_relaxed);
  return now;
}

/* For how many short waits this one counts. The first ones each for itself; then one in some,
 * fewer where there are more lines to read. */
static unsigned weight_of(uint64_t number, unsigned ranks) {
  if (number < watch_one_in) return 1;
  unsigned some = watch_one_in;
  while (some < ranks) some *= 2;
  return watch_scattered(number) % some == 0 ? some : 0;
}

/* To read the lines takes less than a twentieth of that. */
static int64_t long_ns(unsigned ranks) { return 20000 + 1000 * (int64_t)ranks; }

typedef struct arrivals {
  unsigned last;
  int64_t last_ns;
  unsigned first_long; /* of those that waited long the first; `ranks`: nobody did */
} arrivals;

/* All that have left see the same. */
static arrivals arrivals_at(const watch* of, unsigned ranks, uint64_t number) {
  const coming* const all = coming_of(of, 0);
  arrivals seen = {.last_ns = INT64_MIN};
  for (unsigned i = 0; i < ranks; ++i) {
    const int64_t its_ns = get(&all[i].at_ns[number % 2]);
    if (its_ns > seen.last_ns) {
      seen.last_ns = its_ns;
      seen.last = i;
    }
  }
  while (seen.first_long < ranks &&
         seen.last_ns - get(&all[seen.first_long].at_ns[number % 2]) < long_ns(ranks)) {
    ++seen.first_long;
  }
  return seen;
}

void watch_leave(watch* of, unsigned ranks, unsigned rank, uint64_t number, int64_t came_ns,
                 bool polled) {
  const unsigned weight = rank == 0 ? weight_of(number, ranks) : 0;
  const int64_t left_ns = counter_ns_after(clock_of(of));
  if (left_ns - came_ns < long_ns(ranks) && weight == 0) return;
  const coming* const all = coming_of(of, 0);
  const arrivals seen = arrivals_at(of, ranks, number);
  /* Once: by the first of those that waited long, if there are any. If the barrier itself was long,
   * rank 0 counts it each time, or one such in 64 would stand for 64. */
  const bool long_itself = polled && rank == 0 && left_ns - seen.last_ns >= long_ns(ranks);
  const int64_t times = seen.first_long == rank   ? 1
                        : seen.first_long < ranks ? 0
                        : long_itself             ? 1
                                                  : weight;
  if (times == 0) return;
  account* const sums = account_of(of, ranks);
  int64_t caused_ns = 0;
  for (unsigned i = 0; i < ranks; ++i) {
    const int64_t waited_ns = seen.last_ns - get(&all[i].at_ns[number % 2]);
    caused_ns += waited_ns;
    add(&sums->by_rank[i].waited_ns, times * waited_ns);
  }
  add(&sums->by_rank[seen.last].caused_ns, times * caused_ns);
  add(&sums->by_rank[seen.last].last, times);
  if (left_ns > seen.last_ns) add(&sums->own_ns, times * (left_ns - seen.last_ns));
  /* Release: pairs with watch_settle(); all of it is there. */
  atomic_store_explicit(&sums->counted, number, memory_order_release);
}

void watch_settle(const watch* of, unsigned ranks, uint64_t number) {
  enum { patience_ns = 10000000 };
  const unsigned counts = arrivals_at(of, ranks, number).first_long;
  if (counts == 0 || counts == ranks) return; /* rank 0 has */
  const account* const sums = account_of(of, ranks);
  const int64_t end_ns = now_ns() + patience_ns;
  /* Acquire: pairs with watch_leave(). */
  while (atomic_load_explicit(&sums->counted, memory_order_acquire) != number &&
         now_ns() < end_ns) {
    sched_yield();
  }
}

watched_rank watch_of(const watch* of, unsigned ranks, unsigned rank) {
  const counted* const its = &account_of(of, ranks)->by_rank[rank];
  return (watched_rank){.waited_ns = get(&its->waited_ns),
                        .caused_ns = get(&its->caused_ns),
                        .last = get(&its->last)};
}

int64_t watch_own_ns(const watch* of, unsigned ranks) {
  return get(&account_of(of, ranks)->own_ns);
}
