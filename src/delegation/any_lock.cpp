// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/any_lock.hpp"

#include <cerrno>
#include <utility>

#include "machine/error.hpp"

namespace muster::delegation {
namespace {

std::atomic<std::uint64_t> locks_ever{0};

}  // namespace

AnyLock::AnyLock(const locks::Traits& traits, ShortWay way, bool shared)
    : number_ever_(locks_ever.fetch_add(1, std::memory_order_relaxed) + 1),
      short_way_(way),
      traits_(traits),
      shared_(shared) {}

void AnyLock::keep_one() noexcept {
  KeptCount count;
  locks::KeptPosts<KeptCount>::keep(count, kept_);
}

void AnyLock::await_kept() {
  if (this_thread.kept != nullptr) execute_kept();
  KeptCount count;
  locks::KeptPosts<KeptCount>::await_sent(count, kept_);
}

void AnyLock::execute_kept() {
  Thread& t = this_thread;
  std::vector<Kept::Post>& posts = t.kept->posts;
  for (std::size_t i = t.kept->next; i < posts.size(); ++i) {  // which may grow
    if (posts[i].lock != this) continue;
    posts[i].lock = nullptr;  // before it runs: its section may come here
    --t.todo;
    try {
      send_kept([&] { execute_here(posts[i].section); });
    } catch (...) {
      posts[i].lock = this;
      ++t.todo;
      throw;
    }
  }
}

void AnyLock::give_up() {
  throw Error(Status::unsupported,
              std::string(traits_.name) +
                  ": a section that another client executes cannot wait for a condition, nor give "
                  "the lock up; use auto, rcl or a lock that its own clients take");
}

void AnyLock::allow_conditions() { give_up(); }

void AnyLock::recover(Section) {
  throw Error(Status::unsupported, std::string(traits_.name) + ": only shared locks are recovered");
}

void AnyLock::prepare_wait() {
  admit_process();
  const int error = errno;  // the waiting section's
  Thread& t = this_thread;
  if (t.todo != 0) execute_kept();
  const bool would_wait_for_itself = Inside::of(this);
  if (would_wait_for_itself) {
    const Inside inside(this, t.for_another);
    run_deferred();
  }
  errno = error;
  if (!would_wait_for_itself) return;
  throw Error(Status::invalid, "a section of this " + std::string(traits_.name) +
                                   " lock would wait for another one, which comes after it: wait "
                                   "outside");
}

void AnyLock::execute_here(Section section) {
  if (!Inside::of(this)) return execute(section);
  const Inside inside(this, this_thread.for_another);
  section();
}

void AnyLock::refuse_recursion() const {
  throw Error(Status::invalid,
              "a section of this " + std::string(traits_.name) +
                  " lock, or who has acquired it, would wait for itself: post() it "
                  "instead. Or a fibre has "
                  "switched inside of one, which cannot be told apart: leave "
                  "sections before switching");
}

void AnyLock::run_all_deferred() noexcept {
  const NoCancellation whole;
  const int error = errno;  // the section's
  const unsigned process = generation();
  while (has_deferred() && process == generation()) {  // they may post more, or fork
    // Taken out before they run: one that waits for a condition lets the next holder come here.
    for (const Section& section : take_deferred()) {
      if (process == generation()) section();
    }
  }
  errno = error;
}

void AnyLock::defer(Section section) {
  if (std::exchange(deferred_in_, generation()) != generation()) deferred_.clear();
  deferred_.push_back(section);
  look_after_section();
}

std::vector<Section> AnyLock::take_deferred() noexcept {
  std::vector<Section> sections = std::exchange(deferred_, {});
  if (deferred_in_ != generation()) sections.clear();
  return sections;
}

std::string AnyLock::explain() const {
  return "lock: " + std::string(traits_.name) + "\ncost: " + std::string(traits_.cost) +
         " line transfers a section when contended\n";
}

}  // namespace muster::delegation
