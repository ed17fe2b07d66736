// SPDX-License-Identifier: BSD-3-Clause
// The pause between two looks at a word that another CPU is about to write.
#pragma once

namespace muster {

/// Tells the core that this is a polling loop: frees the sibling thread's issue slots and keeps a
/// burst of speculative reads from delaying the very store that is waited for (at P = 2 on Zen 1.7
/// times slower without, over its three line speeds: doc/notes.md).
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // `yield` is a no-op on most cores; isb takes about as long as x86's pause.
  asm volatile("isb" ::: "memory");
#elif defined(__powerpc64__)
  // "yield". Unlike Linux's pair of priorities it leaves the thread's as it was.
  asm volatile("or 27,27,27" ::: "memory");
#elif defined(__riscv)
  // `pause`, which assemblers take only with Zihintpause: a fence of nothing where that is lacking.
  asm volatile(".4byte 0x0100000f" ::: "memory");
#endif
}

/// Asks for a line to write it, ahead of the write.
inline void fetch_to_write(const void* line) noexcept {
#if defined(__x86_64__)
  // The builtin makes a read of it.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace muster
