// SPDX-License-Identifier: BSD-3-Clause
// On which PU a thread runs, as often as anybody likes to know. From version 2.35 on the C library
// registers an area of each thread (rseq(2)) in which the kernel keeps the number: one load. Else
// the kernel is asked, and only at times.
#pragma once

#include <sched.h>

// GCC says that it has the builtin on POWER, and then that this target does not support it.
#if __has_include(<sys/rseq.h>) &&                     \
    (defined(__x86_64__) || defined(__powerpc64__) || \
     (defined(__has_builtin) && __has_builtin(__builtin_thread_pointer) && !defined(__powerpc__)))
#include <sys/rseq.h>
#define MUSTER_HAS_RSEQ 1
#else
#define MUSTER_HAS_RSEQ 0
#endif

#include "machine/machine.hpp"

#if MUSTER_HAS_RSEQ
#pragma weak __rseq_offset
#pragma weak __rseq_size
#endif

namespace muster {

/// Of one participant.
class CurrentPu {
 public:
  /// 1 + the number of the PU, as it was at most `calls_apart` calls ago; 0 if nobody says.
  Word now() noexcept {
#if MUSTER_HAS_RSEQ
    if (&__rseq_size != nullptr && __rseq_size != 0) [[likely]] {
      const auto* area = reinterpret_cast<const struct rseq*>(thread_pointer() + __rseq_offset);
      // The kernel writes it; negative where it was not registered, after all.
      const auto pu = static_cast<std::int32_t>(__atomic_load_n(&area->cpu_id, __ATOMIC_RELAXED));
      if (pu >= 0) [[likely]]
        return static_cast<Word>(pu) + 1;
    }
#endif
    if (calls_++ % calls_apart == 0) asked_ = static_cast<Word>(sched_getcpu() + 1);
    return asked_;
  }

 private:
  static constexpr unsigned calls_apart = 256;

#if MUSTER_HAS_RSEQ
  static std::byte* thread_pointer() noexcept {
#if defined(__x86_64__)
    std::byte* pointer = nullptr;
    asm("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
#elif defined(__powerpc64__)
    std::byte* pointer = nullptr;
    asm("mr %0, 13" : "=r"(pointer));  // the ABI's thread pointer
    return pointer;
#else
    return static_cast<std::byte*>(__builtin_thread_pointer());
#endif
  }
#endif

  unsigned calls_ = 0;
  Word asked_ = 0;
};

}  // namespace muster
