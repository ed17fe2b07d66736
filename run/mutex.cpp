// SPDX-License-Identifier: BSD-3-Clause
// The algorithms of src/lock/parking*.hpp inside of pthread_mutex_t, for mutexes of the types
// normal, recursive, error-checking and adaptive. Those that are robust, shared by processes or
// heed priorities stay the C library's: the kind, which it wrote, tells them apart.
#include <cerrno>
#include <optional>

#include "lock/parking_cna.hpp"
#include "lock/parking_mcs.hpp"
#include "run/port.hpp"

namespace muster::run {
namespace {

using Plain = locks::ParkingWord<Port>;
using Mcs = locks::ParkingMcs<Port>;
using Cna = locks::ParkingCna<Port>;

/// Calls in a row within a NUMA node while others wait: some tens of microseconds.
constexpr locks::Shape shape{.clients = records_max, .clusters = 1, .limit = 256};

constexpr int type_mask = 3;
/// Whether a lock may be elided is the C library's affair; it says nothing about what it is.
constexpr int elision_mask = 0x300;

std::atomic<int>& kind_of(pthread_mutex_t* mutex) {
  return *std::launder(reinterpret_cast<std::atomic<int>*>(&mutex->__data.__kind));
}
bool is_ours(int kind) { return (kind & ~(type_mask | elision_mask)) == 0; }
bool is_swapped() { return settings.mutex > RUN_MUTEX_PTHREAD; }

/// Of recursive and error-checking ones; written by the owner.
std::atomic<Word>& depth_of(pthread_mutex_t* mutex) {
  return *std::launder(reinterpret_cast<std::atomic<Word>*>(&mutex->__data.__count));
}
std::atomic<Word>& owner_of(pthread_mutex_t* mutex) {
  return *std::launder(reinterpret_cast<std::atomic<Word>*>(&mutex->__data.__owner));
}

Plain plain(pthread_mutex_t* mutex) { return {shape, Port::Cells(mutex)}; }

template <class Queue>
void lock_in(pthread_mutex_t* mutex, unsigned number) {
  const Queue queue(shape, Port::Cells(mutex));
  Port port(number);
  if (queue.acquire_at_once(port)) [[likely]]
    return;
  count(number, RUN_WAITED);
  Record& mine = record(number);
  if (number == 0 || mine.queueing) {
    plain(mutex).acquire(port);
    return;
  }
  typename Queue::Ticket ticket{.client = number, .mark = fork_mark()};
  if constexpr (std::is_same_v<Queue, Cna>) {
    unsigned cpu = 0;
    unsigned numa = 0;
    getcpu(&cpu, &numa);
    ticket.numa = numa;
  }
  mine.queueing = true;
  std::atomic_signal_fence(std::memory_order_release);
  queue.acquire_in_line(port, ticket);
  std::atomic_signal_fence(std::memory_order_release);
  mine.queueing = false;
}

void lock_plain(pthread_mutex_t* mutex, unsigned number) {
  Port port(number);
  if (plain(mutex).try_acquire(port)) [[likely]]
    return;
  count(number, RUN_WAITED);
  plain(mutex).acquire(port);
}

void lock_ours(pthread_mutex_t* mutex, unsigned number) {
  switch (settings.mutex) {
    case RUN_MUTEX_MCS:
      return lock_in<Mcs>(mutex, number);
    case RUN_MUTEX_CNA:
      return lock_in<Cna>(mutex, number);
    default:
      return lock_plain(mutex, number);
  }
}

/// If it is the owner that comes, of a mutex that knows its owner: what the call returns, `refusal`
/// if once is all that is allowed.
std::optional<int> come_again(pthread_mutex_t* mutex, int type, int refusal) {
  if (type != PTHREAD_MUTEX_RECURSIVE && type != PTHREAD_MUTEX_ERRORCHECK) return std::nullopt;
  if (owner_of(mutex).load(std::memory_order_relaxed) != my_identity()) return std::nullopt;
  if (type == PTHREAD_MUTEX_ERRORCHECK) return refusal;
  const Word depth = depth_of(mutex).load(std::memory_order_relaxed);
  if (depth == ~Word{0}) return EAGAIN;
  depth_of(mutex).store(depth + 1, std::memory_order_relaxed);
  return 0;
}

void entered(pthread_mutex_t* mutex, int type, unsigned number) {
  count(number, RUN_LOCKS);
  if (type != PTHREAD_MUTEX_RECURSIVE && type != PTHREAD_MUTEX_ERRORCHECK) return;
  owner_of(mutex).store(my_identity(), std::memory_order_relaxed);
  depth_of(mutex).store(1, std::memory_order_relaxed);
}

/// With a deadline: on the word itself, where one that gives up leaves nothing behind.
int lock_until(pthread_mutex_t* mutex, clockid_t clock, const timespec* until, int type) {
  if (const auto result = come_again(mutex, type, EDEADLK)) return *result;
  const unsigned number = my_number();
  Port port(number, clock, until);
  if (!plain(mutex).try_acquire(port)) {
    if (!run_is_time(until)) return EINVAL;
    count(number, RUN_WAITED);
    if (!plain(mutex).acquire(port)) return ETIMEDOUT;
  }
  entered(mutex, type, number);
  return 0;
}

/// Counted, and the C library's.
void pass_on(bool ours) { run_count_one(ours ? RUN_LOCKS : RUN_PASSED_ON); }
/// What the C library has answered, counted if it is the lock.
int passed_on(int error, int kind) {
  if (error == 0 && settings.mutex != RUN_MUTEX_THEIRS) pass_on(is_ours(kind));
  return error;
}

}  // namespace
}  // namespace muster::run

using namespace muster::run;
using muster::Word;

bool run_is_ours(const pthread_mutex_t* mutex) {
  return is_swapped() &&
         is_ours(kind_of(const_cast<pthread_mutex_t*>(mutex)).load(std::memory_order_relaxed));
}

int run_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
  return theirs.mutex_init(mutex, attributes);  // all 0 but for the kind
}

int run_mutex_destroy(pthread_mutex_t* mutex) {
  if (!run_is_ours(mutex)) return theirs.mutex_destroy(mutex);
  Port port(my_number());
  if (!plain(mutex).try_acquire(port)) return EBUSY;
  kind_of(mutex).store(-1, std::memory_order_relaxed);  // as the C library leaves it: EINVAL
  return 0;
}

int run_mutex_lock(pthread_mutex_t* mutex) {
  const int kind = kind_of(mutex).load(std::memory_order_relaxed);
  if (!is_swapped() || !is_ours(kind)) [[unlikely]] {
    if (settings.mutex != RUN_MUTEX_THEIRS) pass_on(is_ours(kind));
    return theirs.mutex_lock(mutex);
  }
  const int type = kind & type_mask;
  if (const auto result = come_again(mutex, type, EDEADLK)) return *result;
  const unsigned number = my_number();
  lock_ours(mutex, number);
  entered(mutex, type, number);
  return 0;
}

int run_mutex_trylock(pthread_mutex_t* mutex) {
  const int kind = kind_of(mutex).load(std::memory_order_relaxed);
  if (!is_swapped() || !is_ours(kind)) [[unlikely]] {
    return passed_on(theirs.mutex_trylock(mutex), kind);
  }
  const int type = kind & type_mask;
  if (const auto result = come_again(mutex, type, EBUSY)) return *result;
  const unsigned number = my_number();
  Port port(number);
  if (!plain(mutex).try_acquire(port)) return EBUSY;
  entered(mutex, type, number);
  return 0;
}

int run_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  const int kind = kind_of(mutex).load(std::memory_order_relaxed);
  if (!is_swapped() || !is_ours(kind)) {
    return passed_on(theirs.mutex_clocklock(mutex, clock, until), kind);
  }
  if (!run_is_clock(clock)) return EINVAL;
  return lock_until(mutex, clock, until, kind & type_mask);
}

int run_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) {
  const int kind = kind_of(mutex).load(std::memory_order_relaxed);
  if (!is_swapped() || !is_ours(kind)) {
    return passed_on(theirs.mutex_timedlock(mutex, until), kind);
  }
  return lock_until(mutex, CLOCK_REALTIME, until, kind & type_mask);
}

int run_mutex_unlock(pthread_mutex_t* mutex) {
  const int kind = kind_of(mutex).load(std::memory_order_relaxed);
  if (!is_swapped() || !is_ours(kind)) [[unlikely]]
    return theirs.mutex_unlock(mutex);
  const int type = kind & type_mask;
  if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK) {
    if (owner_of(mutex).load(std::memory_order_relaxed) != my_identity()) return EPERM;
    const Word depth = depth_of(mutex).load(std::memory_order_relaxed) - 1;
    depth_of(mutex).store(depth, std::memory_order_relaxed);
    if (depth != 0) return 0;
    owner_of(mutex).store(0, std::memory_order_relaxed);
  }
  Port port(my_number());
  plain(mutex).release(port);
  return 0;
}
