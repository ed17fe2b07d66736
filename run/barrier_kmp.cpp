// SPDX-License-Identifier: BSD-3-Clause
// OpenMP of LLVM and Intel: what clang's programs call. The runtime has GNU's functions as well, by
// which it is found and asked. Reductions' barriers are inside of it, and stay there.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "run/barrier.hpp"
#include "run/barrier_team.hpp"

namespace muster::run {
namespace {

/// A region's function: two numbers of its thread, and what it shares.
using Microtask = void (*)(int*, int*, ...);

/// What is shared: as many as `count`, in room for some more.
struct Shared {
  int count;
  void** pointers;
};
constexpr int few = 16, many = 256, shared_max = 4096;
constexpr int room_for(int count) { return count <= few ? few : count <= many ? many : shared_max; }

template <class Function, class... First, std::size_t... I>
void call(std::index_sequence<I...>, void** shared, Function function, First... first) {
  function(first..., shared[I]...);
}

/// The callee takes what it knows of, and does not look at the rest.
template <class Function, class... First>
void call_with(const Shared& shared, Function function, First... first) {
  switch (room_for(shared.count)) {
    case few:
      return call(std::make_index_sequence<few>(), shared.pointers, function, first...);
    case many:
      return call(std::make_index_sequence<many>(), shared.pointers, function, first...);
    default:
      call(std::make_index_sequence<shared_max>(), shared.pointers, function, first...);
  }
}

struct Forked {
  Region region;
  Microtask body;
  const Shared& shared;
};

struct Mine {
  int* thread;
  int* number;
  const Forked& forked;
};

void run_body(void* member) {
  const Mine& me = *static_cast<Mine*>(member);
  call_with(me.forked.shared, me.forked.body, me.thread, me.number);
}

/// What the runtime calls in each of the region's threads.
void run_member(int* thread, int* number, Forked* forked) {
  Mine me{thread, number, *forked};
  forked->region.enter(run_body, &me);
}

void fork_team(void* place, Microtask body, const Shared& shared) {
  void* const code = reinterpret_cast<void*>(body);
  const auto [runtime, is_inside] = kmp_of(code);
  if (is_inside || !is_at_work()) {
    call_with(shared, runtime.__kmpc_fork_call, place, shared.count, body);
    return;
  }
  Forked forked{{runtime, reinterpret_cast<void (*)(void*)>(code), nullptr}, body, shared};
  runtime.__kmpc_fork_call(place, 1, reinterpret_cast<Microtask>(run_member), &forked);
}

}  // namespace
}  // namespace muster::run

using namespace muster::run;

#define CALLERS_RUNTIME kmp_of(__builtin_return_address(0))

MUSTER_EXPORTED void __kmpc_fork_call(void* place, int count, Microtask body, ...) {
  if (count > shared_max) {
    dprintf(STDERR_FILENO, "muster run: an OpenMP region shares more than %d variables\n",
            shared_max);
    std::abort();
  }
  const auto bytes = sizeof(void*) * static_cast<std::size_t>(room_for(count));
  const Shared shared{count, static_cast<void**>(std::memset(__builtin_alloca(bytes), 0, bytes))};
  va_list pointers;
  va_start(pointers, body);
  for (int i = 0; i < count; ++i) shared.pointers[i] = va_arg(pointers, void*);
  va_end(pointers);
  fork_team(place, body, shared);
}

// What flang calls. A region whose condition does not hold is its thread's alone.
MUSTER_EXPORTED void __kmpc_fork_call_if(void* place, int count, Microtask body, int condition,
                                         void* all) {
  const auto [runtime, is_inside] = kmp_of(reinterpret_cast<void*>(body));
  if (condition == 0 || count > 1) {  // more than one is nothing that the runtime knows
    runtime.__kmpc_fork_call_if(place, count, body, condition, all);
    return;
  }
  void* pointers[few] = {all};
  fork_team(place, body, {count, pointers});
}

MUSTER_EXPORTED void __kmpc_barrier(void* place, int thread) {
  // GNU's functions in the same runtime come here, too.
  const auto [runtime, is_inside] = CALLERS_RUNTIME;
  if (is_inside || !is_at_work() || !pass_team_barrier(runtime)) {
    runtime.__kmpc_barrier(place, thread);
  }
}

MUSTER_EXPORTED int __kmpc_cancel_barrier(void* place, int thread) {
  if (is_at_work()) count(Waits::openmp_cancellable);
  return CALLERS_RUNTIME.runtime.__kmpc_cancel_barrier(place, thread);
}

// Their barriers are inside of the runtime.

MUSTER_EXPORTED int __kmpc_reduce(void* place, int thread, int variables, std::size_t bytes,
                                  void* data, void (*add)(void*, void*), void* lock) {
  if (is_at_work()) count(Waits::openmp_inside);
  return CALLERS_RUNTIME.runtime.__kmpc_reduce(place, thread, variables, bytes, data, add, lock);
}

MUSTER_EXPORTED void __kmpc_copyprivate(void* place, int thread, std::size_t bytes, void* data,
                                        void (*copy)(void*, void*), int has_them) {
  if (is_at_work()) count(Waits::openmp_inside);
  CALLERS_RUNTIME.runtime.__kmpc_copyprivate(place, thread, bytes, data, copy, has_them);
}

// Each task is allocated before it is made.

MUSTER_EXPORTED void* __kmpc_omp_task_alloc(void* place, int thread, int flags, std::size_t bytes,
                                            std::size_t shared, void* entry) {
  tell_of_task();
  return CALLERS_RUNTIME.runtime.__kmpc_omp_task_alloc(place, thread, flags, bytes, shared, entry);
}

MUSTER_EXPORTED void* __kmpc_omp_target_task_alloc(void* place, int thread, int flags,
                                                   std::size_t bytes, std::size_t shared,
                                                   void* entry, std::int64_t device) {
  tell_of_task();
  return CALLERS_RUNTIME.runtime.__kmpc_omp_target_task_alloc(place, thread, flags, bytes, shared,
                                                              entry, device);
}
