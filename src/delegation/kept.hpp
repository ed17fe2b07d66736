// SPDX-License-Identifier: BSD-3-Clause
// Posts that sections make to other locks. They are kept until their thread is outside of all
// sections: a post never waits, but sending one may, for a free place among those outstanding, and
// whoever frees it may need a lock that this thread has. What can fail about a post fails when it
// is kept, in the section that makes it: sending cannot.
#pragma once

#include <vector>

#include "delegation/thread.hpp"

namespace muster::delegation {

/// By the calling thread, in a section: `todo` counts it. post() outside of all sections cannot
/// fail.
void keep_post(AnyLock& lock, Section section);
void send_kept_posts_now() noexcept;
/// What this thread has kept for this lock, there and then: nested in its section, or as a part of
/// it if that is one of this lock. Throws what execute() does: that post and those after it are
/// still there.
void execute_kept_posts(AnyLock& lock);
/// Before the lock ends: what sections have posted to it is sent, and this thread's executed.
void await_kept_posts(AnyLock& lock);

/// Outside of all sections: sends what the calling thread's sections have left.
inline void send_kept_posts() noexcept {
  const Thread& t = this_thread;
  if (t.todo != 0 && t.inside == nullptr) [[unlikely]]
    send_kept_posts_now();
}

}  // namespace muster::delegation
