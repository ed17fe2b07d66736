// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/kept.hpp"

#include <cerrno>
#include <utility>

#include "delegation/any_lock.hpp"

namespace muster::delegation {
namespace {

/// What a thread has kept it sends at the end of the section around all.
void look_after_outermost() noexcept {
  if (AnyLock* const lock = Inside::outermost()) lock->look_after_section();
}

}  // namespace

void Kept::add(AnyLock& lock, Section section) {
  posts_.push_back({&lock, section});
  lock.count_kept(1);
  ++this_thread.todo;
}

void Kept::send() noexcept {
  if (sending_) return;  // what it sends may execute sections that post
  sending_ = true;
  while (next_ < posts_.size()) {
    const Post post = posts_[next_++];
    if (post.lock == nullptr) continue;
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
    posts_[i].lock = nullptr;  // before it runs: its section may come here
    --this_thread.todo;
    try {
      lock.execute_here(posts_[i].section);
    } catch (...) {
      posts_[i].lock = &lock;
      ++this_thread.todo;
      throw;
    }
    lock.count_kept(-1);
  }
}

void Kept::adopt(const Kept& left) {
  for (const Post& post : left.posts_) {
    if (post.lock != nullptr) posts_.push_back(post);
  }
}

void keep_post(AnyLock& lock, Section section) {
  Thread& t = this_thread;
  if (t.kept == nullptr) t.kept = new Kept;
  t.kept->add(lock, section);
  if (t.serving == nullptr) look_after_outermost();  // a server looks each time
}

void send_kept_posts_now() noexcept {
  if (Inside::any()) return;
  const int error = errno;  // the section's, which its caller gets
  this_thread.kept->send();
  errno = error;
}

LeftPosts leave_kept_posts() noexcept {
  Thread& t = this_thread;
  if (t.todo == 0) return {};
  return {std::exchange(t.todo, 0), std::unique_ptr<Kept>(std::exchange(t.kept, nullptr))};
}

void adopt_posts(LeftPosts left) noexcept {
  Thread& t = this_thread;
  t.todo += left.count;
  if (t.kept == nullptr) {
    t.kept = left.posts.release();
  } else {
    t.kept->adopt(*left.posts);
  }
  look_after_outermost();
}

}  // namespace muster::delegation
