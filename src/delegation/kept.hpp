// SPDX-License-Identifier: BSD-3-Clause
// Posts that sections make to other locks. They are kept until their thread is outside of all
// sections: a post never waits, but sending one may, for a free place among those outstanding, and
// whoever frees it may need a lock that this thread has.
#pragma once

#include <cstddef>
#include <vector>

#include "delegation/port.hpp"
#include "delegation/thread.hpp"

namespace muster::delegation {

/// One thread's, in order.
class Kept {
 public:
  void add(AnyLock& lock, Section section);
  /// Sends all, and what is added meanwhile.
  void send();
  /// Executes those to a lock that is about to end.
  void execute(AnyLock& lock);

 private:
  struct Post {
    AnyLock* lock;  ///< null: done
    Section section;
  };
  std::vector<Post> posts_;
  std::size_t next_ = 0;
  bool sending_ = false;
};

/// By the calling thread, in a section: `todo` counts it.
void keep_post(AnyLock& lock, Section section);
void send_kept_posts_now();

/// Outside of all sections: sends what the calling thread's sections have left.
inline void send_kept_posts() {
  const Thread& t = this_thread;
  if (t.todo != 0 && t.inside == nullptr) [[unlikely]]
    send_kept_posts_now();
}

}  // namespace muster::delegation
