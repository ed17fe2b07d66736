// SPDX-License-Identifier: BSD-3-Clause
// The algorithms of src/lock/parking*.hpp inside of pthread_mutex_t, for mutexes of the types
// normal, recursive, error-checking and adaptive. Those that are robust, shared by processes or
// heed priorities stay the C library's: the kind, which it wrote, tells them apart.
#include <cerrno>
#include <optional>

#include "lock/parking_cna.hpp"
#include "lock/parking_queue.hpp"
#include "run/port.hpp"

namespace muster::run {
namespace {

using Plain = locks::ParkingWord<Port>;
using Mcs = locks::ParkingMcs<Port>;
using Cna = locks::ParkingCna<Port>;

/// Calls in a row within a NUMA node while others wait.
constexpr locks::Shape shape{.clients = records_max, .clusters = 1, .limit = 256};

constexpr int type_mask = 3;
/// Whether a lock may be elided is the C library's affair; it says nothing about what it is.
constexpr int elision_mask = 0x300;

std::atomic<int>& kind_of(pthread_mutex_t* mutex) {
  return *std::launder(reinterpret_cast<std::atomic<int>*>(&mutex->__data.__kind));
}
bool is_ours(int kind) { return (kind & ~(type_mask | elision_mask)) == 0; }
/// And knows no owner, as far as one look tells.
bool is_normal(int kind) { return (kind & ~elision_mask) == PTHREAD_MUTEX_NORMAL; }
bool is_swapped() { return settings.mutex > RUN_MUTEX_PTHREAD; }

/// Of recursive and error-checking ones; written by the owner.
std::atomic<Word>& depth_of(pthread_mutex_t* mutex) {
  return *std::launder(reinterpret_cast<std::atomic<Word>*>(&mutex->__data.__count));
}
std::atomic<Word>& owner_of(pthread_mutex_t* mutex) {
  return *std::launder(reinterpret_cast<std::atomic<Word>*>(&mutex->__data.__owner));
}

Plain plain(pthread_mutex_t* mutex) { return {shape, Port::Cells(mutex), fork_mark}; }

template <class Queue>
void wait_in(pthread_mutex_t* mutex, unsigned number, Port& port) {
  Record& mine = record(number);
  if (number == 0 || mine.queueing) {
    plain(mutex).acquire(port);
    return;
  }
  if (plain(mutex).acquire_soon(port)) return;
  typename Queue::Ticket ticket{.client = number, .mark = fork_mark};
  if constexpr (std::is_same_v<Queue, Cna>) {
    unsigned cpu = 0;
    unsigned numa = 0;
    getcpu(&cpu, &numa);
    ticket.numa = numa;
  }
  mine.queueing = true;
  std::atomic_signal_fence(std::memory_order_release);
  Queue(shape, Port::Cells(mutex)).acquire_in_line(port, ticket);
  std::atomic_signal_fence(std::memory_order_release);
  mine.queueing = false;
}

[[gnu::noinline]] int wait_for(pthread_mutex_t* mutex, unsigned number) {
  count(number, RUN_WAITED);
  Port port(number);
  if (settings.mutex == RUN_MUTEX_MCS) {
    wait_in<Mcs>(mutex, number, port);
  } else if (settings.mutex == RUN_MUTEX_CNA) {
    wait_in<Cna>(mutex, number, port);
  } else {
    plain(mutex).acquire(port);
  }
  count(number, RUN_LOCKS);
  return 0;
}

int lock_ours(pthread_mutex_t* mutex, unsigned number) {
  Port port(number);
  if (!plain(mutex).try_acquire(port)) [[unlikely]]
    return wait_for(mutex, number);
  count(number, RUN_LOCKS);
  return 0;
}

[[gnu::always_inline]] inline int unlock_ours(pthread_mutex_t* mutex) {
  Port port;
  plain(mutex).release(port);
  return 0;
}

bool try_ours(pthread_mutex_t* mutex) {
  Port port;
  return plain(mutex).try_acquire(port) || plain(mutex).try_acquire_left(port);
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

/// What one that knows its owner notes.
void enter(pthread_mutex_t* mutex, int type) {
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
  count(number, RUN_LOCKS);
  enter(mutex, type);
  return 0;
}

/// Counted, and the C library's.
void pass_on(bool ours) { run_count_one(ours ? RUN_LOCKS : RUN_PASSED_ON); }
/// What the C library has answered, counted if it is the lock.
int passed_on(int error, int kind) {
  if (error == 0 && settings.mutex != RUN_MUTEX_THEIRS) pass_on(is_ours(kind));
  return error;
}

// What is not of most mutexes, and so not in the way of those.
[[gnu::noinline]] int lock_special(pthread_mutex_t* mutex, int kind) {
  if (settings.mutex == RUN_MUTEX_UNKNOWN) run_start();
  if (!is_swapped() || !is_ours(kind)) {
    if (settings.mutex != RUN_MUTEX_THEIRS) pass_on(is_ours(kind));
    return theirs.mutex_lock(mutex);
  }
  const int type = kind & type_mask;
  if (const auto result = come_again(mutex, type, EDEADLK)) return *result;
  lock_ours(mutex, my_number());
  enter(mutex, type);
  return 0;
}

[[gnu::noinline]] int unlock_special(pthread_mutex_t* mutex, int kind) {
  if (settings.mutex == RUN_MUTEX_UNKNOWN) run_start();
  if (!is_swapped() || !is_ours(kind)) return theirs.mutex_unlock(mutex);
  const int type = kind & type_mask;
  if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK) {
    if (owner_of(mutex).load(std::memory_order_relaxed) != my_identity()) return EPERM;
    const Word depth = depth_of(mutex).load(std::memory_order_relaxed) - 1;
    depth_of(mutex).store(depth, std::memory_order_relaxed);
    if (depth != 0) return 0;
    owner_of(mutex).store(0, std::memory_order_relaxed);
  }
  return unlock_ours(mutex);
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
  if (!try_ours(mutex)) return EBUSY;
  kind_of(mutex).store(-1, std::memory_order_relaxed);  // as the C library leaves it: EINVAL
  return 0;
}

int run_mutex_lock(pthread_mutex_t* mutex) {
  const int kind = kind_of(mutex).load(std::memory_order_relaxed);
  const unsigned number = self.number;
  if (!is_swapped() || !is_normal(kind) || number == 0) [[unlikely]]
    return lock_special(mutex, kind);
  return lock_ours(mutex, number);
}

int run_mutex_trylock(pthread_mutex_t* mutex) {
  const int kind = kind_of(mutex).load(std::memory_order_relaxed);
  if (!is_swapped() || !is_ours(kind)) [[unlikely]] {
    return passed_on(theirs.mutex_trylock(mutex), kind);
  }
  const int type = kind & type_mask;
  if (const auto result = come_again(mutex, type, EBUSY)) return *result;
  if (!try_ours(mutex)) return EBUSY;
  count(my_number(), RUN_LOCKS);
  enter(mutex, type);
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
  if (!is_swapped() || !is_normal(kind)) [[unlikely]]
    return unlock_special(mutex, kind);
  return unlock_ours(mutex);
}
