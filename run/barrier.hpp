// SPDX-License-Identifier: BSD-3-Clause
// What the parts of libmuster_barriers.so know of each other. `muster run --barrier` preloads it
// beside libmuster_run.so: doc/run.md. The parts:
//
//   barrier_start.cpp   threads and what they count, forks, the report
//   barrier_posix.cpp   pthread_barrier_*
//   barrier_team.cpp    barriers of OpenMP's teams
//   barrier_gomp.cpp    GNU OpenMP's functions; which runtime is whose
//   barrier_kmp.cpp     LLVM's and Intel's functions
//   barrier_ggml.cpp    ggml_barrier(), where ggml has no OpenMP
//   barrier_anyone.hpp  the barrier of those whose threads have no ranks
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "machine/hardware.hpp"
#include "machine/keep_errno.hpp"
#include "run/preload.h"

/// The names that the program calls.
#define MUSTER_EXPORTED extern "C" __attribute__((visibility("default")))

namespace muster::run {

/// Calls, one for each thread and barrier; counted where somebody is to be told.
enum class Waits : std::uint8_t {
  posix,               ///< at a pthread_barrier_t, ours
  posix_shared,        ///< passed on: processes share it
  posix_too_many,      ///< passed on: it is for more threads than ours can be
  openmp,              ///< in a team, ours
  openmp_first,        ///< passed on: ours was made meanwhile
  openmp_tasks,        ///< passed on: the region makes tasks
  openmp_cancellable,  ///< passed on: the region can be cancelled
  openmp_unknown,      ///< passed on: not in a team that we have seen begin
  openmp_inside,       ///< the runtime's own: reductions, values handed to all
  openmp_joins,        ///< the runtime's own: ends of regions
  ggml,                ///< of a ggml without OpenMP, ours
  ggml_first,          ///< passed on: the first of a graph
};
inline constexpr unsigned kinds_of_waits = 12;

/// One thread writes it.
using Counter = std::atomic<std::uint64_t>;
inline void add_to(Counter& counter, std::uint64_t more) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

/// What a thread's waits at ours took.
struct Times {
  Counter until_the_last_ns{0};
  Counter own_ns{0};  ///< from then on
  void add(std::int64_t came_ns, std::int64_t last_ns, std::int64_t left_ns) noexcept {
    add_to(until_the_last_ns, static_cast<std::uint64_t>(std::max(last_ns - came_ns, {})));
    add_to(own_ns, static_cast<std::uint64_t>(std::max(left_ns - last_ns, {})));
  }
};

/// A thread that waits. Never freed, since others look at it; a later thread takes it over.
struct alignas(128) Member {
  explicit Member(Hardware::Domain& domain) noexcept;

  void count(Waits what) noexcept { add_to(counts[static_cast<unsigned>(what)], 1); }

  /// What its port has learnt holds for barriers of one size.
  void serve(unsigned participants) noexcept;

  /// The barrier whose memory the thread may yet touch.
  std::atomic<const void*> inside{nullptr};
  std::atomic<bool> is_taken{true};
  Member* next = nullptr;  ///< of all there are
  Counter counts[kinds_of_waits]{};
  Times posix;
  Times openmp;
  Times ggml;
  Counter was_last{0};  ///< at barriers without ranks
  Hardware port;        ///< at barriers without ranks

 private:
  unsigned participants_ = 0;  ///< for which its port's policy is
};

[[noreturn]] void fail_without_memory() noexcept;
/// Stays for good.
template <class T, class... Arguments>
T& make(Arguments&&... arguments) noexcept {
  auto* const made = new (std::nothrow) T{std::forward<Arguments>(arguments)...};
  if (made == nullptr) fail_without_memory();
  return *made;
}

/// The calling thread's. Nothing is changed in a program without `is_at_work()`.
Member& me() noexcept;
bool is_at_work() noexcept;
/// Whether somebody is to be told what happens at barriers.
bool is_watched() noexcept;
inline void count(Waits what) noexcept {
  if (is_watched()) me().count(what);
}
/// Returns once no thread is inside the barrier.
void await_left(const void* barrier) noexcept;

/// Who came last how often; `whom` says who they are.
void print_last(int file, bool as_json, const std::vector<std::uint64_t>& times, const char* whom);

/// The function of that name that code at this address would reach without us; null: none.
void* reached_from(const void* code, const char* name) noexcept;
/// The same, in that code's library and what it was linked to.
void* brought_by(const void* code, const char* name) noexcept;
/// As reached_from(), where there has to be one.
void* reached_or_abort(const void* code, const char* name) noexcept;
/// The function of that name that there would be without us; there is one.
void* next_function(const char* name) noexcept;
template <class Function>
void find_next(const char* name, Function& into) noexcept {
  into = reinterpret_cast<Function>(next_function(name));
}

}  // namespace muster::run
