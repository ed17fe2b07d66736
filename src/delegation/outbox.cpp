// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/outbox.hpp"

#include <exception>
#include <optional>

#include "delegation/any_lock.hpp"
#include "delegation/kept.hpp"
#include "delegation/station.hpp"

namespace muster::delegation {
namespace {

/// False if the thread has no seat, and gets none now.
bool send(const Post& post) noexcept {
  try {
    post.lock->post(post.section);
  } catch (const std::exception&) {
    return false;
  }
  if (!post.lock->in_own_process()) [[unlikely]]
    end_executors_child();
  post.lock->count_kept(-1);
  return true;
}

}  // namespace

/// Its own, or else an empty one.
Outbox::Line& Outbox::line_to(const Station* station) {
  Line* free = nullptr;
  for (Line& line : lines_) {
    if (line.to == station) return line;
    if (line.posts.empty() && line.sender == nullptr) free = &line;
  }
  if (free == nullptr) free = &lines_.emplace_back();
  free->to = station;
  return *free;
}

void Outbox::add(const std::vector<Post>& posts) {
  const std::scoped_lock lock(mutex_);
  for (const Post& post : posts) {
    if (post.lock == nullptr) continue;
    Line& line = line_to(post.lock->station());
    if (line.posts.empty() && line.sender == nullptr)
      turns_.fetch_add(1, std::memory_order_relaxed);
    line.posts.push_back({post, added_++});
    posts_.fetch_add(1, std::memory_order_relaxed);
  }
}

Outbox::Line* Outbox::oldest() {
  Line* found = nullptr;
  for (Line& line : lines_) {
    if (!line.has_turn()) continue;
    if (found == nullptr || line.posts.front().number < found->posts.front().number) found = &line;
  }
  return found;
}

bool Outbox::send_line() noexcept {
  std::optional<Blocking> aside;
  std::unique_lock lock(mutex_);
  Line* const line = oldest();
  if (line == nullptr) return false;
  const Thread* const self = &this_thread;
  line->sender = self;
  turns_.fetch_sub(1, std::memory_order_relaxed);
  bool is_sent = true;
  while (!line->posts.empty()) {
    const Post post = line->posts.front().post;
    const bool takes_long = line->posts.size() > Station::depth;  // than fit into a ring
    lock.unlock();
    if (takes_long && !aside) aside.emplace(this_thread.serving);
    is_sent = send(post);
    if (this_thread.todo != 0) {  // it was executed here
      this_thread.kept->move_to(*this);
      this_thread.serving->ring_bell();  // the next one may wait
    }
    lock.lock();
    if (line->sender != self) return true;  // it has waited for a condition
    if (!is_sent) break;
    line->posts.pop_front();
    posts_.fetch_sub(1, std::memory_order_relaxed);
  }
  let_go(*line);
  return is_sent;
}

bool Outbox::leave_line() noexcept {
  const std::scoped_lock lock(mutex_);
  for (Line& line : lines_) {
    if (line.sender != &this_thread) continue;
    line.posts.pop_front();
    posts_.fetch_sub(1, std::memory_order_relaxed);
    return let_go(line);
  }
  return false;
}

/// True if it has a turn now.
bool Outbox::let_go(Line& line) noexcept {
  line.sender = nullptr;
  if (line.has_turn()) turns_.fetch_add(1, std::memory_order_relaxed);
  return line.has_turn();
}

}  // namespace muster::delegation
