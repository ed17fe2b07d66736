// SPDX-License-Identifier: BSD-3-Clause
// Barriers of OpenMP's teams. A parallel region's function is wrapped, so that its threads know the
// team that they are members of; the first that comes to a barrier takes one for the region, of
// those kept for teams of this size.
//
// Tasks: a barrier of OpenMP runs them; ours cannot. Who makes one says so (`tell_of_task`), and
// has not arrived yet: so ours cannot be over, and everybody, waiting or yet to come, passes
// through the runtime's barrier once before ours is. So tasks run while one thread makes more of
// them, none is lost, and whoever makes none never sees the runtime's. Afterwards the region's
// barriers are left to the runtime, and so are the later regions with this function.
//
// Invariants:
// 1. Whether ours serves is the same for all members: it follows from the region, and from what was
//    stored before a barrier that all have passed.
// 2. In an episode either nobody or every member passes through the runtime's barrier, once.
// 3. A region's barrier is given back after the runtime's join: nobody is inside.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "machine/machine.hpp"

namespace muster::run {

/// An OpenMP runtime of this process: what is asked of it.
struct Runtime {
  int (*num_threads)();
  int (*thread_num)();
  int (*level)();
  int (*cancellation)();
  void (*barrier)();
  /// LLVM's and Intel's, beside GNU's; null elsewhere.
  void (*__kmpc_fork_call)(void* place, int count, void (*body)(int*, int*, ...), ...);
  void (*__kmpc_fork_call_if)(void* place, int count, void (*body)(int*, int*, ...), int condition,
                              void* all);
  void (*__kmpc_barrier)(void* place, int thread);
  int (*__kmpc_cancel_barrier)(void* place, int thread);
  int (*__kmpc_reduce)(void* place, int thread, int variables, std::size_t bytes, void* data,
                       void (*add)(void*, void*), void* lock);
  void (*__kmpc_copyprivate)(void* place, int thread, std::size_t bytes, void* data,
                             void (*copy)(void*, void*), int has_them);
  void* (*__kmpc_omp_task_alloc)(void* place, int thread, int flags, std::size_t bytes,
                                 std::size_t shared, void* entry);
  void* (*__kmpc_omp_target_task_alloc)(void* place, int thread, int flags, std::size_t bytes,
                                        std::size_t shared, void* entry, std::int64_t device);
};

class Team;

/// On the stack of the thread that begins it.
struct Region {
  Region(const Runtime& its_runtime, void (*its_body)(void*), void* its_data) noexcept;
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  /// What the runtime calls in each of its threads; the region.
  static void run(void* region);
  /// Calls it as the body in one of the region's threads.
  void enter(void (*its_body)(void*), void* its_data);

  void* reductions = nullptr;  ///< GNU's runtime has them stand first in what it hands on
  const Runtime& runtime;
  void (*const body)(void*);
  void* const data;
  const bool has_tasks;  ///< as one with this function had
  std::atomic<Team*> team{nullptr};
};

/// At a barrier of the calling thread's team: true if it has been passed; false if it is the
/// runtime's. `before`: what belongs to it; only if it is not the runtime's.
bool pass_team_barrier(const Runtime& runtime, void (*before)() = nullptr) noexcept;
/// Of code that calls, or is to be called, functions of LLVM's.
struct Reached {
  const Runtime& runtime;
  bool is_inside;  ///< the code is the runtime's own
};
Reached kmp_of(const void* code) noexcept;
/// Of the calling thread's region; null if it is in none.
const Runtime* runtime_here() noexcept;
/// Before the calling thread makes one.
void tell_of_task() noexcept;
/// In a fork's child.
void forget_teams() noexcept;
void forget_graphs() noexcept;
/// Which serve, and which member came last how often.
void print_teams(int file, bool as_json);

}  // namespace muster::run
