// SPDX-License-Identifier: BSD-3-Clause
// The mutex `cna` with its words in a muster_mutex. A thread's place in line is by its seat.
#include "muster/mutex.h"

#include <sched.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <new>

#include "capi/failure.hpp"
#include "delegation/generation.hpp"
#include "delegation/thread.hpp"
#include "lock/parking_cna.hpp"
#include "machine/keep_errno.hpp"
#include "machine/made_once.hpp"
#include "machine/no_cancellation.hpp"
#include "machine/parking_port.hpp"
#include "machine/usable_cpus.hpp"

namespace muster {
namespace {

/// Those that a client of a queue waits by. Never unmapped: who wakes a thread late touches nothing
/// that is gone. Client 0 is nobody.
struct alignas(128) Place {
  std::atomic<Word> cells[3];
};
constinit std::array<Place, delegation::seats_max + 1> places{};

class Cells {
 public:
  explicit Cells(muster_mutex* mutex) : words_(mutex->words) {}
  std::atomic<Word>& global(unsigned index) const {
    static_assert(sizeof(std::atomic<Word>) == sizeof(std::uint32_t));
    return *std::launder(reinterpret_cast<std::atomic<Word>*>(&words_[index]));
  }
  std::atomic<Word>& of(Word client, unsigned index) const { return places[client].cells[index]; }
  static bool is_alone() {
    static constinit MadeOnce<unsigned> cpus;
    return cpus.get([] {
      const NoCancellation whole;
      const KeepErrno of_caller;
      return usable_cpus();
    }) < 2;
  }

 private:
  std::uint32_t* words_;
};

using Port = ParkingPort<Cells>;
using Cna = locks::ParkingCna<Port>;

/// Calls in a row within a NUMA node while others wait.
constexpr locks::Shape shape{.clients = delegation::seats_max, .clusters = 1, .limit = 256};

/// Of this process among those it was forked from: in the upper half.
Word mark() { return static_cast<Word>(delegation::generation() - 1) << 16; }

locks::ParkingWord<Port> word_of(muster_mutex* mutex) { return {shape, Cells(mutex), mark()}; }

/// 0: it cannot have a place. Beside the line it waits as well.
Word client() {
  try {
    return delegation::first_seat() + 1;
  } catch (...) {  // too many threads, or no memory
    return 0;
  }
}

}  // namespace
}  // namespace muster

using namespace muster;

void muster_mutex_lock_slowly(muster_mutex* mutex) {
  Port port;
  const auto word = word_of(mutex);
  if (word.try_acquire(port) || word.acquire_soon(port)) return;
  const KeepErrno of_caller;
  Cna::Ticket ticket{.client = client(), .mark = mark()};
  unsigned numa = 0;
  getcpu(nullptr, &numa);
  if (ticket.client == 0) {
    word.acquire_in_turn(port);
    return;
  }
  ticket.numa = numa;
  Cna(shape, Cells(mutex)).acquire_in_line(port, ticket);
}

int muster_mutex_trylock_slowly(muster_mutex* mutex) {
  Port port;
  const auto word = word_of(mutex);
  return static_cast<int>(word.try_acquire(port) || word.try_acquire_left(port));
}

void muster_mutex_unlock_slowly(muster_mutex* mutex) {
  Port port;
  word_of(mutex).release(port);
}

int muster_mutex_timedlock(muster_mutex* mutex, std::int64_t timeout_ns) {
  constexpr std::int64_t second_ns = 1'000'000'000;
  if (muster_mutex_trylock(mutex) != 0) return MUSTER_OK;
  if (timeout_ns <= 0) return fail(Status::timeout);
  const std::int64_t end_ns = until_ns(timeout_ns);  // by that clock
  const timespec until{end_ns / second_ns, end_ns % second_ns};
  Port port(CLOCK_MONOTONIC, &until);
  const auto word = word_of(mutex);
  return word.acquire(port) ? MUSTER_OK : fail(Status::timeout);
}
