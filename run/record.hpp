// SPDX-License-Identifier: BSD-3-Clause
// A thread's record: its place in a mutex's queue, its place on a core, its counts. Records are
// never moved nor unmapped, so that whoever wakes a thread late touches nothing that is gone.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "machine/machine.hpp"
#include "run/preload.h"

namespace muster::run {

/// More threads than this at a time have none: they are not placed, and wait on the mutex itself.
inline constexpr unsigned records_max = 1U << 15;
inline constexpr unsigned nowhere = 0;

/// All 0 at first, so that a table of them takes no room in the file.
struct alignas(128) Record {
  std::atomic<Word> cells[3];  ///< for the queue: others write here
  alignas(128) std::atomic<std::uint64_t> counts[RUN_COUNTS];
  union {
    void* (*posix)(void*);
    int (*c11)(void*);
  } start;
  void* argument;
  unsigned core;       ///< where it was placed, from 1
  unsigned mask;       ///< number of the mask that it would have without us
  unsigned next_free;  ///< a record's number
  bool queueing;       ///< a handler that interrupts this finds its place in use
  bool was_created;    ///< through us
};

extern constinit std::array<Record, records_max> records;
/// By number; 0 is nobody's, and counts for all who have none.
inline Record& record(unsigned number) { return records[number]; }

/// What a thread knows of itself.
struct Self {
  unsigned number;
  bool has_ended;
  int makes_own;  ///< threads of libmuster's
  Word identity;  ///< 0: none yet
};
extern constinit thread_local Self self;

unsigned ask_number();
/// The calling thread's number, which it gets here if it has none; 0 if it cannot have one.
inline unsigned my_number() { return self.number != 0 ? self.number : ask_number(); }
/// Who owns a mutex: the thread, as long as it lives, its last handlers and forks included. Never
/// 0, and nobody else's before 2^32 threads have asked.
Word my_identity();
/// Of this process among those it was forked from: in the upper half.
extern constinit Word fork_mark;
/// One CPU only: nobody changes anything while we look.
bool is_alone();

inline void count(unsigned number, run_count what) {
  std::atomic<std::uint64_t>& counter = records[number].counts[what];
  if (number == 0) [[unlikely]] {
    counter.fetch_add(1, std::memory_order_relaxed);
  } else {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
}

}  // namespace muster::run
