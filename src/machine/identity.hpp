// SPDX-License-Identifier: BSD-3-Clause
// Who a thread or a process is to others that share memory with it, in one word: its number, and
// bits of a hash of that and of when it was started. By these a number that is used again, or
// nonsense, is known as nobody's.
#pragma once

#include <cstdint>

#include "machine/machine.hpp"

namespace muster {

/// Linux's numbers are below 2^22 (PID_MAX_LIMIT). The bit above them is free for who keeps the
/// word.
inline constexpr Word number_bits = (Word{1} << 22) - 1;
inline constexpr unsigned identity_hash_shift = 23;

constexpr Word number_of(Word identity) noexcept { return identity & number_bits; }

/// Of whom nobody can see whether it lives. Many bits from 0: one that flips does not make it.
inline constexpr Word unseen_identity = Word{0b101010101} << identity_hash_shift | number_bits;

/// The calling thread. `namespaces` tells apart where numbers and times of start differ: namespaces
/// of PIDs and of time, and whether /proc is theirs. 0 if there is none.
struct Self {
  Word identity = 0;  ///< 0: not asked yet
  bool has_proc = false;
  std::uint64_t namespaces = 0;
};
#if !defined(__SANITIZE_ADDRESS__)
[[gnu::tls_model("initial-exec")]]
#endif
extern thread_local constinit Self self_if_known;
void find_self() noexcept;
inline const Self& own_thread() noexcept {
  if (self_if_known.identity == 0) [[unlikely]]
    find_self();
  return self_if_known;
}

/// The calling process.
Word own_process() noexcept;
/// Whether a number is another thread's than the one that had this identity, so far as /proc says:
/// of none or one that has ended it does not know. Some microseconds, as what follows.
bool is_another(Word identity) noexcept;
/// Whether the thread has ended, or never was. Not a cancellation point, nor are the others.
bool is_thread_gone(Word identity) noexcept;
/// Whether this process's first thread has ended, and there are only `threads` others. False where
/// /proc does not say.
bool are_left_alone(unsigned long threads) noexcept;
/// Whether a process is gone, or a zombie (kill(pid, 0) calls zombies alive).
bool is_process_gone(Word identity) noexcept;

}  // namespace muster
