// SPDX-License-Identifier: BSD-3-Clause
// pthread_barrier_*: src/barrier/anyone.hpp inside of pthread_barrier_t. Those that processes share
// are the C library's, and so are those for more threads than an episode can count.
#include <pthread.h>

#include <cstddef>
#include <new>

#include "machine/made_once.hpp"
#include "run/barrier_anyone.hpp"

namespace muster::run {
namespace {

/// What pthread_barrier_t holds. In the C library's own the word of the mark is 0 or 128.
using State = WithoutRanks;
constexpr Word ours = 0x4d757374;
constexpr Word ours_watched = ours + 1;
static_assert(sizeof(State) <= sizeof(pthread_barrier_t));
static_assert(alignof(State) <= alignof(pthread_barrier_t));
static_assert(offsetof(State, arrivals) == 0 && offsetof(State, mark) == 12);

State& state_of(pthread_barrier_t* barrier) {
  return *std::launder(reinterpret_cast<State*>(barrier));
}

/// The C library's.
struct Next {
  decltype(&pthread_barrier_init) init;
  decltype(&pthread_barrier_wait) wait;
  decltype(&pthread_barrier_destroy) destroy;
};
const Next& next() {
  static constinit MadeOnce<Next> found;
  return found.get([] {
    Next all{};
    find_next("pthread_barrier_init", all.init);
    find_next("pthread_barrier_wait", all.wait);
    find_next("pthread_barrier_destroy", all.destroy);
    return all;
  });
}

bool is_shared(const pthread_barrierattr_t* attributes) {
  int shared = PTHREAD_PROCESS_PRIVATE;
  if (attributes != nullptr) pthread_barrierattr_getpshared(attributes, &shared);
  return shared != PTHREAD_PROCESS_PRIVATE;
}

template <bool watched>
int wait_at(State& state) {
  const KeepErrno keep;
  return wait_without_rank<watched>(state, state.participants, Waits::posix, &Member::posix)
             ? PTHREAD_BARRIER_SERIAL_THREAD
             : 0;
}

/// Ours and the C library's are told apart by the mark.
bool is_ours(pthread_barrier_t* barrier) {
  return state_of(barrier).mark == ours || state_of(barrier).mark == ours_watched;
}

}  // namespace
}  // namespace muster::run

using namespace muster::run;
using muster::participants_max;

MUSTER_EXPORTED int pthread_barrier_init(pthread_barrier_t* barrier,
                                         const pthread_barrierattr_t* attributes, unsigned count) {
  const bool can_be = count != 0 && count <= participants_max && !is_shared(attributes);
  if (!can_be || !is_at_work()) return next().init(barrier, attributes, count);
  auto* const state = new (barrier) State{};
  state->participants = count;
  state->mark = is_watched() ? ours_watched : ours;
  return 0;
}

MUSTER_EXPORTED int pthread_barrier_wait(pthread_barrier_t* barrier) {
  State& state = state_of(barrier);
  if (state.mark == ours) [[likely]]
    return wait_at<false>(state);
  if (state.mark == ours_watched) return wait_at<true>(state);
  if (is_at_work()) {
    count(state.participants > participants_max ? Waits::posix_too_many : Waits::posix_shared);
  }
  return next().wait(barrier);
}

// By whoever has left it, while others may be about to.
MUSTER_EXPORTED int pthread_barrier_destroy(pthread_barrier_t* barrier) {
  if (!is_ours(barrier)) return next().destroy(barrier);
  const muster::KeepErrno keep;
  await_left(barrier);
  return 0;
}
