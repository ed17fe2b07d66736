// SPDX-License-Identifier: BSD-3-Clause
// A lock of any kind, as the C ABI has it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delegation/generation.hpp"
#include "delegation/port.hpp"
#include "delegation/share.hpp"
#include "delegation/thread.hpp"
#include "lock/shape.hpp"
#include "machine/keep_errno.hpp"

namespace muster::delegation {

class Station;

/// What became of a lock's sections; sums over all clients. Read while they run, it is a little
/// old.
struct Counters {
  std::uint64_t inlined = 0;    ///< executed by the client itself
  std::uint64_t delegated = 0;  ///< executed by a server or another client
  std::uint64_t combined = 0;   ///< of others, executed by a client
  std::uint64_t waited = 0;     ///< `auto`, with conditions: of inlined, what had to wait
  std::uint64_t switches = 0;   ///< `auto`: a client changed from one way to the other
};

/// What a lock is and does now. The texts are constants.
struct Choice {
  const char* kind;
  const char* way;  ///< who executes its sections, and why
  bool has_server = false;
  std::optional<unsigned> server_numa{};  ///< by the system's number; unless it is not known
  const char* server_why = "only auto and rcl have servers";
};

// Posts that sections make to other locks. They are kept until their thread is outside of all
// sections: a post never waits, but sending one may, for a free place among those outstanding, and
// whoever frees it may need a lock that this thread has. What can fail about a post fails when it
// is kept, in the section that makes it: sending cannot.

/// By the calling thread, in a section: `todo` counts it. post() outside of all sections cannot
/// fail.
void keep_post(AnyLock& lock, Section section);
void send_kept_posts_now() noexcept;
/// What this thread has kept for this lock, and those have for which it executes sections that are
/// nested in theirs, there and then: nested in its section, or as a part of it if that is one of
/// this lock. Throws what execute() does: that post and those after it are still there.
void execute_kept_posts(AnyLock& lock);
/// Before the lock ends: what sections have posted to it is sent, and this thread's executed.
void await_kept_posts(AnyLock& lock);

/// Outside of all sections: sends what the calling thread's sections have left.
inline void send_kept_posts() noexcept {
  const Thread& t = this_thread;
  if (t.todo != 0 && t.inside == nullptr) [[unlikely]]
    send_kept_posts_now();
}

class AnyLock {
 public:
  /// Executes a section and returns a code, as those of the C ABI do.
  using Execute = int (*)(AnyLock& lock, Section section);
  /// Executes a section with what a thread knows that has used the lock last: 0, or if that is not
  /// enough what `otherwise` returns.
  using ShortWay = int (*)(AnyLock& lock, Section section, Execute otherwise);

  /// `shared`: between processes, so that a fork's child uses it, too.
  explicit AnyLock(const locks::Traits& traits, ShortWay way = nullptr, bool shared = false);
  virtual ~AnyLock() = default;

  /// Executes the section in mutual exclusion with all others of this lock, and returns after it.
  /// Throws Error: a thread's first call may (no_memory); in a fork's child it does (busy), where
  /// the lock is not shared; invalid: the caller is in a section of this lock; peer: a process died
  /// in a section. `copied`: at its argument the section may get a copy of so many CopiedWords,
  /// which is copied back.
  virtual void execute(Section section, unsigned copied = 0) = 0;
  /// The same of a lock that has readers, beside others that are executed so. In such a section
  /// nothing is posted to this lock, and no condition of it awaited.
  void execute_shared(Section section);
  bool admits_readers() const noexcept { return readers_ != nullptr; }

  /// Of threads of which `quick` is this lock. Null: none ever is.
  ShortWay short_way() const { return short_way_; }
  /// Has it executed some time, after this client's earlier ones; may return before. Where there is
  /// no server it is executed at once; in a section of this lock, right after that one (defer()).
  /// Throws as execute().
  virtual void post(Section section) {
    const NoCancellation whole;  // what is posted is executed wholly
    if (!Inside::of(this)) return execute(section);
    admit_process();
    require_held_here();
    defer(section);
  }

  /// Before the caller waits for sections that were posted to this lock: those that only it could
  /// execute, and only after the section that it is in, are executed there and then. Throws Error:
  /// busy in a fork's child; invalid: the caller is in a section of this lock, and what has not
  /// been executed by now is not before that section ends.
  void prepare_wait();

  /// The calling thread has the lock from here to release(), as if it were in a section of it.
  /// Waits for it until that time, on now_ns(); false after that. Throws as execute(), and
  /// Error(unsupported) for kinds that no thread takes for itself.
  bool acquire(std::int64_t end_ns);
  /// In the section, or outside of all, in which it was acquired. Of several locks in any order.
  /// Throws Error(invalid) where it was not acquired there. In a fork's child whose parent has
  /// acquired it the lock stays the parent's.
  void release();

  /// What a section of this lock, which is_innermost(), does without it, in a thread that is not
  /// cancelled: executes what was posted to the lock, gives it up, calls `body`, and takes it
  /// again. A server's spare goes on meanwhile; other locks that the thread has stay taken. `body`
  /// finds in errno what the section has left there, and the section what `body` has. In a fork's
  /// child that is made meanwhile the lock is not taken: who has it is the parent's. Throws Error,
  /// with the lock as it was: unsupported where others execute the sections; busy in a fork's child
  /// of before. With the lock taken: peer, a process died in a section meanwhile.
  void unlocked(Section body);
  /// Sections of this lock may wait for conditions from now on.
  virtual void allow_conditions();
  /// Clients share the time in its sections from now on. Before it is used. Throws
  /// Error(unsupported) where processes share the lock.
  void share_time(std::int64_t slice_ns);
  /// Null: they do not.
  Share* share() const noexcept { return share_.get(); }
  // As execute() and post(), where they do.
  void execute_by_share(Section section);
  void post_by_share(Section section);
  /// Whether the calling thread has acquired it in the section that it is in, or outside of all.
  bool is_acquired_here() const noexcept { return acquired_here() != nullptr; }
  /// Whether that is a section of this lock, or the thread has acquired it there.
  bool is_innermost() const noexcept { return this_thread.inside == this || is_acquired_here(); }
  /// A robust lock whose holder died: sets right what it protects, and the lock is whole again.
  virtual void recover(Section section);

  /// Whose server may execute its sections.
  virtual const Station* station() const { return nullptr; }
  virtual Counters counters() const { return {}; }
  /// What a client needs that takes and gives the lock without a call.
  struct AtOnce {
    std::uint64_t number = ~std::uint64_t{0};  ///< number_ever(); else no thread's `quick`
    std::atomic<Word>* held = nullptr;         ///< the first of muster_lock_row
  };
  virtual AtOnce at_once() { return {}; }
  virtual Choice choice() const;
  /// What it does and why, for people.
  virtual std::string explain() const;

  const locks::Traits& traits() const { return traits_; }
  /// No other lock of this process has or had it; not 0.
  std::uint64_t number_ever() const { return number_ever_; }

  /// From inside a section of this lock: has it executed right after that section, or before that
  /// gives the lock up, by whoever executes that one.
  void defer(Section section);
  bool has_deferred() const { return !deferred_.empty(); }
  /// In a section of this lock, or for one that is: its executor looks, after that, for posts that
  /// it has left. For locks whose clients do not look each time.
  virtual void look_after_section() noexcept {}
  /// By the executor of a section, after it. False in the child of one that has forked.
  bool run_deferred() noexcept {
    if (has_deferred()) [[unlikely]]
      return run_all_deferred();
    return true;
  }
  /// Executes a section of the calling thread, which has the lock and is outside of all sections;
  /// then `leave()`, see Section::run_own().
  /// It is inside until the caller says otherwise: once the lock is given, for each access between
  /// the exchange that takes a lock and the store that gives it costs, and is cheap after that.
  [[gnu::always_inline]] void run_at_once(Thread& thread, Section section, auto leave) {
    thread.enter(this);
    section.run_own(leave);
  }
  /// In sections that the caller executes: executes it, and whoever does that knows of these.
  /// False if it is in none, or is doing so.
  bool execute_nested_in(Section section) {
    if (section.function == Nested::run || !Inside::any()) [[likely]]
      return false;
    Nested nested{section};
    execute({Nested::run, &nested});
    return true;
  }
  /// Whether the calling thread is in a section of it, or shares one.
  bool is_entered() const noexcept {
    return Inside::of(this) || (readers_ != nullptr && Inside::of(readers_.get()));
  }
  /// By who destroys it: until what was posted is executed, and no thread looks at it any more. The
  /// last of those that use what a lock protects may destroy both, while others come back from
  /// their own sections. False: some still did at that time, on now_ns(); the memory has to stay.
  virtual bool await_callers(std::int64_t end_ns);
  /// How many posts to it are kept.
  std::atomic<Word>& kept() noexcept { return kept_; }
  /// False in a fork's child of the process that has made the lock here.
  bool in_own_process() const { return birth_.is_here(); }

 protected:
  /// Whether the seat's thread may be here, or have been.
  virtual bool has_client(unsigned seat) const noexcept;
  /// In a section of this lock: gives the lock up, and takes it again. Throws Error(unsupported)
  /// for kinds whose sections other clients execute. False: the lock is taken, and a process died
  /// in a section meanwhile.
  virtual void give_up();
  virtual bool take_again() { return true; }
  /// Takes the lock at once, or not. `again`: who asks will ask again, soon.
  virtual bool try_take(bool again);
  /// Waits for it, as acquire().
  virtual bool wait_to_take(std::int64_t end_ns);
  /// Executes a section of the calling thread: `take()` takes the lock, and `give()` gives it back.
  /// No thread is quick at a lock of which sections are executed so.
  [[gnu::always_inline]] void execute_taken(Section section, auto take, auto give) {
    admit();
    {
      const KeepErrno of_caller;  // waiting may change it
      take();
    }
    run_taken(section, give);
  }
  [[gnu::always_inline]] void run_taken(Section section, auto give) {
    Thread& t = this_thread;
    const unsigned process = generation();
    std::optional<Inside> inside;
    if (t.inside == nullptr && t.outer == nullptr) [[likely]] {
      t.quick = 0;
      t.enter(this);
    } else {
      inside.emplace(this, false);
    }
    section.run_own([&]() __attribute__((always_inline)) {
      const bool is_child = process != generation() || !run_deferred();  // the lock is its parent's
      if (!is_child) [[likely]] {
        const KeepErrno of_section;
        give();
      }
      inside ? inside.reset() : t.leave();
      send_kept_posts();
    });
  }
  /// What acquire() has taken. The thread is in no section of this lock any more.
  virtual void give_acquired() { give_up(); }

  /// Refuses a fork's child, and a section that would wait for itself.
  void admit() const {
    admit_process();
    if (this_thread.is_in_none()) [[likely]]
      return;
    if (is_entered()) [[unlikely]]
      refuse_recursion();
  }
  void admit_process() const {
    if (!shared_) birth_.require("this lock was made", "make the child's own, or use a shared one");
  }
  /// What is deferred, which is no longer then. Nothing in a fork's child of who has deferred it.
  std::vector<Section> take_deferred() noexcept;
  /// As enter_acquired(), by a thread that has no lock yet; and whether it has, and has to see to,
  /// nothing else.
  void enter_first(Thread& thread) noexcept {
    held_in_ = generation();
    held_ = {.lock = this};
    thread.outer = &held_;
    thread.quick = 0;  // the short ways are for threads without a lock
  }
  bool has_only_this(const Thread& thread) const noexcept {
    return thread.outer == &held_ && held_.outer == nullptr && thread.inside == nullptr &&
           thread.todo == 0;
  }
  bool is_shared() const { return shared_; }
  unsigned held_in_ = 0;  ///< generation() of who has acquired it, or of who has a shared one
  std::unique_ptr<AnyLock> readers_;  ///< what threads are inside of that share a section

 private:
  [[noreturn, gnu::cold]] void refuse_recursion() const;
  [[noreturn, gnu::cold]] void refuse_release() const;
  /// Not inlined where all else is: its registers would be saved on the way of each section.
  [[gnu::cold, gnu::noinline]] bool run_all_deferred() noexcept;
  /// In a section of it, of which others are not to be executed before that ends. Throws
  /// Error(busy) in a fork's child that is in there: its parent has the lock.
  void require_held_here() const;
  Level** acquired_here() const noexcept;
  /// The thread has acquired it; and has no longer.
  void enter_acquired() noexcept;
  void leave_acquired() noexcept;

  // Read by every section.
  const std::uint64_t number_ever_;
  ShortWay short_way_;
  std::vector<Section> deferred_;  ///< the lock's holder's
  const locks::Traits& traits_;
  std::unique_ptr<Share> share_;
  const Birth birth_;
  const bool shared_;
  unsigned deferred_in_ = 0;  ///< generation() of who has deferred
  Level held_;                ///< by the thread that has acquired it
  std::atomic<Word> kept_{0};
};

}  // namespace muster::delegation
