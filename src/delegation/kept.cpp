// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/kept.hpp"

#include <sched.h>

#include <cerrno>
#include <utility>

#include "delegation/any_lock.hpp"
#include "lock/kept_posts.hpp"

namespace muster::delegation {
namespace {

/// What lock/kept_posts.hpp counts by.
struct Count {
  template <Order O>
  static Word fetch_add(std::atomic<Word>& kept, Word delta, OrderTag<O>) noexcept {
    return kept.fetch_add(delta, std_order(O));
  }
  template <Order O>
  static bool await(const std::atomic<Word>& kept, Equals ready, OrderTag<O>) noexcept {
    while (!ready(kept.load(std_order(O)))) sched_yield();
    return true;
  }
};
using Counted = locks::KeptPosts<Count>;
Count count;

/// The thread sends it at the end of the section around all; a server's looks each time.
void keep(const Kept::Post& post) {
  Thread& t = this_thread;
  if (t.kept == nullptr) t.kept = new Kept;
  t.kept->posts.push_back(post);
  ++t.todo;
  if (t.serving != nullptr) return;
  if (AnyLock* const lock = Inside::outermost()) lock->look_after_section();
}

}  // namespace

void keep_post(AnyLock& lock, Section section) {
  keep({&lock, section});
  Counted::keep(count, lock.kept());
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
    Counted::send(count, post.lock->kept(), [&] { post.lock->post(post.section); });
  }
  kept.posts.clear();
  kept.next = 0;
  kept.is_sending = false;
  errno = error;
}

void execute_kept_posts(AnyLock& lock) {
  Thread& t = this_thread;
  if (t.kept == nullptr) return;
  std::vector<Kept::Post>& posts = t.kept->posts;
  for (std::size_t i = t.kept->next; i < posts.size(); ++i) {  // which may grow
    if (posts[i].lock != &lock) continue;
    posts[i].lock = nullptr;  // before it runs: its section may come here
    --t.todo;
    try {
      Counted::send(count, lock.kept(), [&, section = posts[i].section] {
        if (!Inside::of(&lock)) return lock.execute(section);
        const Inside inside(&lock, t.for_another);
        section();
      });
    } catch (...) {
      posts[i].lock = &lock;
      ++t.todo;
      throw;
    }
  }
}

void await_kept_posts(AnyLock& lock) {
  execute_kept_posts(lock);
  Counted::await_sent(count, lock.kept());
}

std::vector<Kept::Post> leave_kept_posts() noexcept {
  this_thread.todo = 0;
  return std::exchange(this_thread.kept->posts, {});
}

void adopt_posts(std::vector<Kept::Post>& left) noexcept {
  for (const Kept::Post& post : std::exchange(left, {})) {
    if (post.lock != nullptr) keep(post);
  }
}

}  // namespace muster::delegation
