// SPDX-License-Identifier: BSD-3-Clause
// A part of a section that is outside of it: a wait for a condition, and what a program does in the
// middle of a section without its lock.
#pragma once

#include <cerrno>

#include "delegation/kept.hpp"
#include "delegation/station.hpp"

namespace muster::delegation {

/// Where `lock` is_innermost(), of a thread that is not cancelled: gives the lock up, calls `body`,
/// which throws nothing, and takes it again. A server's spare goes on meanwhile; other locks that
/// the thread has stay taken. `body` finds in errno what the section has left there,
/// and the section what `body` has. False: the lock is taken, and a process died in a section
/// meanwhile. In a fork's child that is made meanwhile it is not taken: who has it is the parent's.
/// Throws Error(unsupported), with the lock as it was, where others execute the sections.
template <class Body>
bool unlocked(AnyLock& lock, Body body) {
  Thread& thread = this_thread;
  const unsigned process = generation();
  int error = errno;
  const bool is_acquired = lock.is_acquired_here();
  if (is_acquired) {
    lock.give_up_acquired();
  } else {
    lock.give_up();
    thread.inside = nullptr;
  }
  bool whole = true;
  {
    const KeepLast last;
    const Inside none(nullptr, thread.for_another);
    // What it has posted to its own lock is executed at its end; to others, now.
    send_kept_posts();
    const Blocking blocking(thread.serving);
    errno = error;
    body();
    error = errno;
    if (process == generation()) [[likely]]
      whole = lock.take_again();
  }
  if (is_acquired) {
    lock.enter_acquired();
  } else {
    thread.inside = &lock;
  }
  errno = error;
  return whole;
}

}  // namespace muster::delegation
