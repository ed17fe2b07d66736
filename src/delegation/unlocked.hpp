// SPDX-License-Identifier: BSD-3-Clause
// A part of a section that is outside of it: a wait for a condition, and what a program does in the
// middle of a section without its lock.
#pragma once

#include <cerrno>

#include "delegation/any_lock.hpp"
#include "delegation/station.hpp"
#include "machine/error.hpp"

namespace muster::delegation {

/// Where `lock` is_innermost(), of a thread that is not cancelled: gives the lock up, calls `body`,
/// which throws nothing, and takes it again. A server's spare goes on meanwhile; other locks that
/// the thread has stay taken. `body` finds in errno what the section has left there, and the
/// section what `body` has. In a fork's child that is made meanwhile the lock is not taken: who has
/// it is the parent's. Throws Error, with the lock as it was: unsupported where others execute the
/// sections; busy in a fork's child of before. With the lock taken: peer, a process died in a
/// section meanwhile.
template <class Body>
void unlocked(AnyLock& lock, Body body) {
  Thread& thread = this_thread;
  const unsigned process = generation();
  int error = errno;
  Share* const share = lock.share();
  const Share::Turn turn = share != nullptr ? share->turn() : Share::Turn();
  lock.require_held_here();
  const bool is_acquired = lock.is_acquired_here();
  if (is_acquired) {
    lock.give_up_acquired();
  } else {
    lock.give_up();
    thread.inside = nullptr;
  }
  if (share != nullptr) Share::end(turn);
  bool whole = true;
  thread.quick = 0;
  {
    const Inside none(nullptr, thread.for_another);
    // What it has posted to its own lock is executed at its end; to others, now.
    send_kept_posts();
    const Blocking blocking;
    errno = error;
    body();
    error = errno;
    if (process == generation()) [[likely]]
      whole = lock.take_again();
  }
  thread.last_lock = 0;  // what was executed may have left requests in other seats, to come first
  if (share != nullptr && process == generation()) share->begin(*turn.whose);
  if (is_acquired) {
    lock.enter_acquired();
  } else {
    thread.inside = &lock;
  }
  errno = error;
  if (!whole) {
    throw Error(Status::peer,
                "a process died inside a section of this lock meanwhile: what it protects may be "
                "half changed. Leave this section, and set it right in muster_lock_recover()");
  }
}

}  // namespace muster::delegation
