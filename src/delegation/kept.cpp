// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/kept.hpp"

#include <cerrno>

#include "delegation/any_lock.hpp"

namespace muster::delegation {

void Kept::add(AnyLock& lock, Section section) {
  posts_.push_back({&lock, section});
  lock.count_kept(1);
  ++this_thread.todo;
}

void Kept::send() {
  if (sending_) return;  // what it sends may execute sections that post
  sending_ = true;
  for (; next_ < posts_.size(); ++next_) {
    const Post post = posts_[next_];
    if (post.lock == nullptr) continue;
    posts_[next_].lock = nullptr;
    --this_thread.todo;
    post.lock->post(post.section);
    post.lock->count_kept(-1);
  }
  posts_.clear();
  next_ = 0;
  sending_ = false;
}

void Kept::execute(AnyLock& lock) {
  for (std::size_t i = next_; i < posts_.size(); ++i) {  // which may grow
    if (posts_[i].lock != &lock) continue;
    posts_[i].lock = nullptr;
    --this_thread.todo;
    lock.execute(posts_[i].section);
    lock.count_kept(-1);
  }
}

void keep_post(AnyLock& lock, Section section) {
  Thread& t = this_thread;
  take_seat(t.depth);  // sending it later finds one
  if (t.kept == nullptr) t.kept = new Kept;
  t.kept->add(lock, section);
}

void send_kept_posts_now() {
  if (Inside::any()) return;
  const int error = errno;  // the section's, which its caller gets
  this_thread.kept->send();
  errno = error;
}

}  // namespace muster::delegation
