// SPDX-License-Identifier: BSD-3-Clause
// Posts that sections make to other locks. They are kept until their thread is outside of all
// sections: a post never waits, but sending one may, for a free place among those outstanding, and
// whoever frees it may need a lock that this thread has. What can fail about a post fails when it
// is kept, in the section that makes it: sending cannot.
#pragma once

#include <memory>

#include "delegation/thread.hpp"

namespace muster::delegation {

/// By the calling thread, in a section: `todo` counts it. post() outside of all sections cannot
/// fail.
void keep_post(AnyLock& lock, Section section);
void send_kept_posts_now() noexcept;
/// What a thread has kept that does not send it.
struct LeftPosts {
  unsigned count = 0;
  std::unique_ptr<Kept> posts;
};
LeftPosts leave_kept_posts() noexcept;
/// By the client of the sections that made them; there are some.
void adopt_posts(LeftPosts left) noexcept;

/// Outside of all sections: sends what the calling thread's sections have left.
inline void send_kept_posts() noexcept {
  const Thread& t = this_thread;
  if (t.todo != 0 && t.inside == nullptr) [[unlikely]]
    send_kept_posts_now();
}

}  // namespace muster::delegation
