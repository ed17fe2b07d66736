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

void keep_post(AnyLock& lock, Section section) {
  Thread& t = this_thread;
  if (t.kept == nullptr) t.kept = new Kept;
  t.kept->posts.push_back({&lock, section});
  lock.keep_one();
  ++t.todo;
  if (t.serving == nullptr) look_after_outermost();  // a server looks each time
}

void send_kept_posts_now() noexcept {
  Thread& t = this_thread;
  if (t.outer != nullptr && t.outer->in_section) end_unreleased();
  if (Inside::any()) return;
  Kept& kept = *t.kept;
  if (kept.is_sending) return;  // what it sends may execute sections that post
  const int error = errno;      // the section's, which its caller gets
  kept.is_sending = true;
  while (kept.next < kept.posts.size()) {
    const Kept::Post post = kept.posts[kept.next++];
    if (post.lock == nullptr) continue;
    --t.todo;
    post.lock->send_kept([&] { post.lock->post(post.section); });
  }
  kept.posts.clear();
  kept.next = 0;
  kept.is_sending = false;
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
    for (const Kept::Post& post : left.posts->posts) {
      if (post.lock != nullptr) t.kept->posts.push_back(post);
    }
  }
  look_after_outermost();
}

}  // namespace muster::delegation
