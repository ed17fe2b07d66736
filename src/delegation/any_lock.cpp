// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/any_lock.hpp"

#include <utility>

#include "lock/kept_posts.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"
#include "wait/linger.hpp"

namespace muster::delegation {
namespace {

std::atomic<std::uint64_t> locks_ever{0};

/// What lock/kept_posts.hpp counts by.
struct Count {
  template <Order O>
  static Word fetch_add(std::atomic<Word>& kept, Word delta, OrderTag<O>) noexcept {
    return kept.fetch_add(delta, std_order(O));
  }
  template <Order O>
  static bool await(const std::atomic<Word>& kept, Equals ready, OrderTag<O>) noexcept {
    for (unsigned looks = 0; !ready(kept.load(std_order(O))); ++looks) linger(looks);
    return true;
  }
};
using Counted = locks::KeptPosts<Count>;
Count count;

}  // namespace

AnyLock::AnyLock(const locks::Traits& traits, ShortWay way, bool shared)
    : number_ever_(locks_ever.fetch_add(1, std::memory_order_relaxed) + 1),
      short_way_(way),
      traits_(traits),
      shared_(shared) {}

void AnyLock::execute_shared(Section section) {
  admit();
  readers_->execute(section);
}

void AnyLock::give_up() {
  throw Error(Status::unsupported,
              std::string(traits_.name) +
                  ": a section that another client executes cannot wait for a condition, nor give "
                  "the lock up; use auto, rcl or a lock that its own clients take");
}

void AnyLock::allow_conditions() {
  if (traits_.style == locks::Style::combining) give_up();
}

void AnyLock::share_time(std::int64_t slice_ns) {
  if (shared_) {
    throw Error(
        Status::unsupported,
        "between processes a lock's time is not shared: threads of one process have accounts");
  }
  share_ = std::make_unique<Share>(slice_ns);
  short_way_ = [](AnyLock& lock, Section section, Execute otherwise) {
    return otherwise(lock, section);
  };
}

void AnyLock::execute_by_share(Section section) {
  if (in_own_process()) share_->await_turn(WaitPolicy::forever);
  Share::Counted counted{section, *share_, share_->mine()};
  execute({Share::Counted::run, &counted});
}

void AnyLock::post_by_share(Section section) {
  if (in_own_process()) share_->await_turn(WaitPolicy::forever);
  auto counted = std::make_unique<Share::Counted>(Share::Counted{section, *share_, share_->mine()});
  counted->tell_posted();
  post({Share::Counted::run_once, counted.get()});
  static_cast<void>(counted.release());  // it has run, or will
}

bool AnyLock::await_callers(std::int64_t end_ns) {
  const auto is_here = [this](const Thread& thread, unsigned seat) {
    return has_client(seat) &&
           (thread.is_calling(this) || (readers_ != nullptr && thread.is_calling(readers_.get())));
  };
  for (unsigned looks = 0; any_thread(is_here); ++looks) {
    if (now_ns() >= end_ns) return false;
    linger(looks);
  }
  if (__tsan_acquire != nullptr) __tsan_acquire(this);
  return true;
}

bool AnyLock::has_client(unsigned) const noexcept { return false; }

void AnyLock::recover(Section) {
  throw Error(Status::unsupported, std::string(traits_.name) + ": only robust locks are recovered");
}

/// If the caller is in no section of it and keeps no post to it, the lock may have ended: what is
/// waited for has been executed, and another thread destroys the lock. It is not looked at then,
/// but in a fork's child, of which it may be the parent's.
void AnyLock::prepare_wait() {
  const KeepErrno of_section;
  if (generation() != first_generation) admit_process();
  execute_kept_posts(*this);
  if (!Inside::of(this)) return;
  require_held_here();
  {
    const Inside inside(this, this_thread.for_another);
    run_deferred();
  }
  throw Error(Status::invalid, "a section of this " + std::string(traits_.name) +
                                   " lock would wait for another one, which comes after it: wait "
                                   "outside");
}

void AnyLock::require_held_here() const {
  if (!shared_ || held_in_ == generation()) return;
  throw Error(Status::busy,
              "this section has forked, and its lock is the parent's: in the child, leave it");
}

void AnyLock::refuse_recursion() const {
  throw Error(Status::invalid,
              "this thread is in a section of this " + std::string(traits_.name) +
                  " lock, or has acquired it, and would wait for itself. post() the section, or "
                  "call the function without locking. A fibre that has switched in a section looks "
                  "the same: leave sections first");
}

bool AnyLock::run_all_deferred() noexcept {
  const NoCancellation whole;
  const KeepErrno of_section;
  const unsigned process = generation();
  while (has_deferred() && process == generation()) {  // they may post more, or fork
    // Taken out before they run: one that waits for a condition lets the next holder come here.
    for (const Section& section : take_deferred()) {
      if (process == generation()) section();
    }
  }
  return process == generation();
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

Choice AnyLock::choice() const {
  const bool combines = traits_.style == locks::Style::combining;
  return {traits_.name.data(),
          combines ? "executed by whoever has the lock, for those who wait, too: it combines"
                   : "executed by their own clients: it has no other way"};
}

std::string AnyLock::explain() const {
  const Choice chosen = choice();
  std::string text =
      format("lock: {}\ncost: {} (line transfers a section, when contended)\nsections: {}\n",
             chosen.kind, traits_.cost, chosen.way);
  if (share_ == nullptr) return text;
  const Share::Occupancy o = share_->occupancy();
  const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
  text += format("time in its sections: {:.3f} of {:.3f} ms\n", ms(o.all_ns), ms(o.of_ns));
  if (o.clients == 0) return text;
  return text + format("most and least of a thread: {:.3f} and {:.3f} ms, of {}\n", ms(o.most_ns),
                       ms(o.least_ns), counted(o.clients, "threads"));
}

// For threads themselves, beside sections that are calls.

bool AnyLock::acquire(std::int64_t end_ns) {
  admit();
  if (share_ != nullptr && !share_->await_turn(end_ns)) [[unlikely]]
    return false;
  if (!try_take(false)) {
    const NoCancellation whole;
    const KeepErrno of_caller;
    if (!wait_to_take(end_ns)) return false;
  }
  held_in_ = generation();
  enter_acquired();
  if (share_ != nullptr) [[unlikely]]
    share_->begin(share_->mine());
  return true;
}

void AnyLock::release() {
  if (!is_acquired_here()) [[unlikely]]
    refuse_release();
  const bool is_child = held_in_ != generation() || (has_deferred() && !run_all_deferred());
  leave_acquired();
  if (!is_child) [[likely]] {
    const Calling call(this);
    if (share_ != nullptr) [[unlikely]]
      Share::end(share_->turn());
    give_acquired();
  }
  send_kept_posts();
}

void AnyLock::refuse_release() const {
  throw Error(Status::invalid, "this " + std::string(traits_.name) +
                                   " lock was not acquired here: the thread that has acquired it "
                                   "releases it, in the same section");
}

/// Where the thread's list of levels has it, if it was acquired in the innermost section.
Level** AnyLock::acquired_here() const noexcept {
  Level** at = &this_thread.outer;
  while (*at != nullptr && *at != &held_ && (*at)->lock != nullptr && *at == &(*at)->lock->held_) {
    at = &(*at)->outer;
  }
  return *at == &held_ ? at : nullptr;
}

void AnyLock::enter_acquired() noexcept {
  Thread& t = this_thread;
  t.quick = 0;  // the short ways are for threads without a lock
  held_ = {this, std::exchange(t.outer, &held_), t.inside != nullptr};
  if (!held_.in_section) return;
  ++t.todo;  // what the section's end looks for
  if (t.serving == nullptr) Inside::outermost()->look_after_section();  // as keep_post()
}

void AnyLock::leave_acquired() noexcept {
  *acquired_here() = held_.outer;
  if (held_.in_section) --this_thread.todo;
}

bool AnyLock::try_take(bool) {
  throw Error(Status::unsupported,
              std::string(traits_.name) +
                  ": no thread takes this lock for itself; use auto, rcl, pthread-mutex, "
                  "robust, phase-fair, mcs, ticket or cas-spin, or execute sections only");
}

/// Out of turn: who stands in line cannot leave.
bool AnyLock::wait_to_take(std::int64_t end_ns) {
  if (end_ns == WaitPolicy::forever) return take_again();
  for (unsigned naps = 0;; ++naps) {
    const std::int64_t left_ns = end_ns - now_ns();
    if (left_ns <= 0) return false;
    nap(naps, left_ns);
    if (try_take(true)) return true;
  }
}

// Posts that sections make.

/// The thread sends it at the end of the section around all; a server's looks each time.
void keep_post(AnyLock& lock, Section section) {
  Thread& t = this_thread;
  if (t.kept == nullptr) t.kept = new Kept;
  t.kept->posts.push_back({&lock, section});
  ++t.todo;
  Counted::keep(count, lock.kept());
  if (t.serving != nullptr) return;
  if (AnyLock* const around = Inside::outermost()) around->look_after_section();
}

void send_kept_posts_now() noexcept {
  Thread& t = this_thread;
  if (t.outer != nullptr && t.outer->in_section) end_unreleased();
  if (Inside::any()) return;
  Kept& kept = *t.kept;
  if (kept.is_sending) return;  // what it sends may execute sections that post
  const KeepErrno of_section;
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
}

namespace {

/// What `t` has kept, and before that who has asked for the sections of these levels and waits.
void execute_kept_posts_of(Thread& t, const Level* at, AnyLock& lock) {
  for (; at != nullptr; at = at->outer) {
    if (at->asker != nullptr) execute_kept_posts_of(*at->asker->asker, &at->asker->asked_in, lock);
  }
  if (t.kept == nullptr) return;
  std::vector<Kept::Post>& posts = t.kept->posts;
  for (std::size_t i = t.kept->next; i < posts.size(); ++i) {  // which may grow
    if (posts[i].lock != &lock) continue;
    posts[i].lock = nullptr;  // before it runs: its section may come here
    --t.todo;
    try {
      Counted::send(count, lock.kept(), [&, section = posts[i].section] {
        if (!Inside::of(&lock)) return lock.execute(section);
        const Inside inside(&lock, this_thread.for_another);
        section();
      });
    } catch (...) {
      posts[i].lock = &lock;
      ++t.todo;
      throw;
    }
  }
}

}  // namespace

void execute_kept_posts(AnyLock& lock) {
  execute_kept_posts_of(this_thread, this_thread.outer, lock);
}

void await_kept_posts(AnyLock& lock) {
  execute_kept_posts(lock);
  Counted::await_sent(count, lock.kept());
}

}  // namespace muster::delegation
