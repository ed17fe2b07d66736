// SPDX-License-Identifier: BSD-3-Clause
// Posts that sections make to other locks. They are kept until their thread is outside of all
// sections: a post never waits, but sending one may, for a free place among those outstanding, and
// whoever frees it may need a lock that this thread has. What can fail about a post fails when it
// is kept, in the section that makes it: sending cannot.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "delegation/port.hpp"
#include "delegation/thread.hpp"

namespace muster::delegation {

/// One thread's, in order.
class Kept {
 public:
  void add(AnyLock& lock, Section section);
  /// Sends all, and what is added meanwhile.
  void send() noexcept;
  /// Executes those to one lock, there and then. Throws what execute() does: that one and those
  /// after it are still there.
  void execute(AnyLock& lock);
  /// Adds those that another thread has kept.
  void adopt(const Kept& left);
  /// Drops all, in a fork's child.
  void forget() noexcept {
    posts_.clear();
    next_ = 0;
  }

 private:
  struct Post {
    AnyLock* lock;  ///< null: done
    Section section;
  };
  std::vector<Post> posts_;
  std::size_t next_ = 0;
  bool sending_ = false;
};

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
