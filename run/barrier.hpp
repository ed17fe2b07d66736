// SPDX-License-Identifier: BSD-3-Clause
// What the parts of libmuster_barriers.so know of each other. `muster run --barrier` preloads it
// beside libmuster_run.so: doc/run.md. The parts:
//
//   barrier_start.cpp   threads and what they count, forks, the report
//   barrier_posix.cpp   pthread_barrier_*
//   barrier_team.cpp    barriers of OpenMP's teams
//   barrier_gomp.cpp    GNU OpenMP's functions; which runtime is whose
//   barrier_kmp.cpp     LLVM's and Intel's functions
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <new>
#include <utility>

#include "machine/hardware.hpp"
#include "run/preload.h"

/// The names that the program calls.
#define MUSTER_EXPORTED extern "C" __attribute__((visibility("default")))

namespace muster::run {

/// Calls, one for each thread and barrier.
enum class Waits : std::uint8_t {
  posix,               ///< at a pthread_barrier_t, ours
  posix_shared,        ///< passed on: processes share it
  posix_too_many,      ///< passed on: it is for more threads than ours can be
  openmp,              ///< in a team, ours
  openmp_first,        ///< passed on: ours was made meanwhile
  openmp_tasks,        ///< passed on: the region makes tasks
  openmp_cancellable,  ///< passed on: the region can be cancelled
  openmp_unknown,      ///< passed on: not in a team that we have seen begin
};
inline constexpr unsigned kinds_of_waits = 8;

/// A thread that waits. Never freed, since others look at it; a later thread takes it over.
struct alignas(128) Member {
  explicit Member(Hardware::Domain& domain) noexcept;

  void count(Waits what) noexcept {
    auto& counter = counts[static_cast<unsigned>(what)];
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  /// What its port has learnt holds for barriers of one size.
  void serve(unsigned participants) noexcept;

  /// The barrier whose memory the thread may yet touch.
  std::atomic<const void*> inside{nullptr};
  std::atomic<bool> is_taken{true};
  Member* next = nullptr;  ///< of all there are
  std::atomic<std::uint64_t> counts[kinds_of_waits]{};
  Hardware port;  ///< at barriers without ranks

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
/// Returns once no thread is inside the barrier.
void await_left(const void* barrier) noexcept;

/// The function of that name that there would be without us; there is one.
void* next_function(const char* name) noexcept;
template <class Function>
void find_next(const char* name, Function& into) noexcept {
  into = reinterpret_cast<Function>(next_function(name));
}

/// Functions that POSIX has change no errno.
class KeepErrno {
 public:
  KeepErrno() noexcept : before_(errno) {}
  ~KeepErrno() { errno = before_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int before_;
};

}  // namespace muster::run
