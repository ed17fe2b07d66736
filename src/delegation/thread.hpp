// SPDX-License-Identifier: BSD-3-Clause
// What the calling thread is to locks: its seats (lock/seats.hpp), and the sections it is in. It
// takes a seat when it first needs it. A section that executes another lock's section needs a
// second one: the first one's request may still be pending.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

#include "delegation/section.hpp"
#include "lock/seats.hpp"
#include "machine/mutual.hpp"
#include "machine/no_cancellation.hpp"
#include "machine/preload.hpp"

extern "C" {
// The program's, if it is built with ThreadSanitizer.
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);
}

namespace muster::delegation {

class AnyLock;
struct Level;
struct Nested;
class Station;

/// Threads that use locks at once, and sections nested in them, at most; beyond, execute() throws
/// Error(no_memory). Address space, not memory, is set aside for so many.
inline constexpr unsigned seats_max = 16'384;

/// Posts that a thread's sections have made, in order (any_lock.hpp).
struct Kept {
  struct Post {
    AnyLock* lock;  ///< null: done
    Section section;
  };
  std::vector<Post> posts;
  std::size_t next = 0;
  bool is_sending = false;
};

/// Where a thread was placed (places.cpp), until it ends.
struct Place {
  virtual ~Place() = default;
};

struct Thread {
  // The first line: all that a section of the lock used last needs. Four words of it are
  // muster_this_thread in lock.h.

  /// Number of the lock that it used last, if it may go the short way there: its seat is known, and
  /// if that is `auto`, it does not delegate and has nothing pending. 0: of none. It is last_lock
  /// if it is not 0; in a section it is then of that one's lock or of one around it.
  std::uint64_t quick = 0;
  void* last_seat = nullptr;  ///< what it has at the lock that it used last
  void* last_habit = nullptr;
  AnyLock* inside = nullptr;  ///< the lock whose section it executes
  unsigned depth = 0;  ///< of sections that it waits for or executes, but not by the short way
  unsigned todo = 0;   ///< what its sections have left to see to: posts, and locks acquired there

  unsigned seats = 0;  ///< that it has
  unsigned first = 0;  ///< the first of them
  unsigned* others = nullptr;
  Level* outer = nullptr;       ///< the sections around this one
  AnyLock* calling = nullptr;   ///< the lock that a call of it may still look at (Calling)
  Kept* kept = nullptr;         ///< posts of sections, until it is outside of all
  Station* serving = nullptr;   ///< whose requests it executes, if it is a server's
  void* servant = nullptr;      ///< what it is there
  std::uint64_t last_lock = 0;  ///< number of the lock that it used last, outside of any section
  Place* place = nullptr;       ///< null: it has none
  int* error = nullptr;         ///< where its errno is: asking costs a call
  int id = 0;                   ///< to the operating system; once it has a seat
  bool for_another = false;     ///< the section is another client's
  bool has_ended = false;       ///< it has given its seats back, though it may take new ones

  void enter(AnyLock* lock) noexcept { __atomic_store_n(&inside, lock, __ATOMIC_RELAXED); }
  /// From here on it looks no more at the lock whose section it was in: pairs with is_calling().
  void leave(AnyLock* into = nullptr) noexcept {
    __atomic_store_n(&inside, into, __ATOMIC_RELEASE);
  }
  /// For another thread.
  bool is_calling(const AnyLock* lock) const noexcept {
    return __atomic_load_n(&inside, __ATOMIC_ACQUIRE) == lock ||
           __atomic_load_n(&calling, __ATOMIC_ACQUIRE) == lock;
  }

  /// Its seat for this depth, below `seats`.
  unsigned seat(unsigned at) const { return at == 0 ? first : others[at - 1]; }
  /// In no section, nor has it acquired a lock.
  bool is_in_none() const { return inside == nullptr && outer == nullptr; }
  bool is_outside() const { return is_in_none() && depth == 0 && serving == nullptr; }
  /// What it has at a lock: found without a seat when it next comes there from outside of all
  /// sections.
  void remember(std::uint64_t lock, void* at_lock, void* habit) {
    if (!is_in_none()) return;
    quick = 0;
    last_lock = lock;
    last_seat = at_lock;
    last_habit = habit;
  }
};

/// The calling thread's. Plain data: no destructor runs before the last use. Programs know it, too
/// (lock.h), but have none that the library would use instead.
/// (Not with a sanitizer that tests its address for null: the linker's relaxation of that model
/// loses the flags it tests.)
#if !defined(__SANITIZE_ADDRESS__)
[[gnu::tls_model("initial-exec")]]
#endif
[[gnu::visibility("protected")]] extern thread_local constinit Thread this_thread __asm__(
    "muster_this_thread");

/// Takes the seat for this depth; it is kept until the thread ends. Throws Error(no_memory).
unsigned take_seat(unsigned depth);
inline unsigned seat_at(unsigned depth) {
  Thread& t = this_thread;
  return depth < t.seats ? t.seat(depth) : take_seat(depth);
}
inline unsigned first_seat() { return seat_at(0); }

/// While it lives a call of the lock may look at it, though others have executed its section, or
/// have the lock by now: whoever destroys the lock waits for that (AnyLock::await_callers()). In
/// sections `inside` says as much, at no cost.
class Calling {
 public:
  explicit Calling(AnyLock* lock) noexcept : before_(this_thread.calling) { set(lock); }
  ~Calling() {
    if (__tsan_release != nullptr) [[unlikely]]
      __tsan_release(this_thread.calling);  // pairs with await_callers()
    set(before_);
  }
  Calling(const Calling&) = delete;

 private:
  static void set(AnyLock* lock) noexcept {
    __atomic_store_n(&this_thread.calling, lock, __ATOMIC_RELEASE);
  }
  AnyLock* before_;
};

/// Ends a fork's child whose only thread has executed the section that forked for another one, a
/// server's or a client's: the section has come back to where nobody called it.
[[noreturn, gnu::cold]] void end_executors_child();

/// Ends a program whose section has left without the release of what it has acquired: nobody would
/// know who has that.
[[noreturn, gnu::cold]] void end_unreleased() noexcept;

/// Threads that have seats.
extern std::atomic<unsigned> seated_threads;
/// Whether `is(thread, seat)` holds of any thread that has one but the caller, in any of its seats.
/// No thread ends meanwhile.
bool any_thread(const std::function<bool(const Thread& thread, unsigned seat)>& is);

/// The machine of lock/seats.hpp.
struct SeatMachine : Mutual {
  using Bits = std::uint64_t;
  static constexpr unsigned words = seats_max / 64;
  static Bits taken(unsigned word) { return taken_[word]; }
  static void set_taken(unsigned word, Bits bits) { taken_[word] = bits; }
  static Bits used(unsigned word) { return used_[word].load(std::memory_order_relaxed); }
  static void set_used(unsigned word, Bits bits) {
    used_[word].store(bits, std::memory_order_relaxed);
  }

 private:
  static Bits taken_[words];
  static std::atomic<Bits> used_[words];
};

/// Where threads leave requests behind when they end.
class LeavesRequests {
 public:
  /// Whether anything is pending that the seat's thread has posted. By that, or once it has ended.
  virtual bool has_pending(unsigned seat) const noexcept = 0;

 protected:
  ~LeavesRequests() = default;
};

/// From here on seats with requests pending there stay used when their threads end.
void watch_seats(const LeavesRequests& where);
/// Nothing is pending there any more.
void unwatch_seats(const LeavesRequests& where) noexcept;

/// One level deeper, for as long as it lives.
class Depth {
 public:
  Depth() : thread_(this_thread), seat_(seat_at(thread_.depth)) { ++thread_.depth; }
  ~Depth() { --thread_.depth; }
  Depth(const Depth&) = delete;
  unsigned seat() const { return seat_; }
  Thread& thread() const { return thread_; }

 private:
  Thread& thread_;
  unsigned seat_;
};

/// A lock that a thread has, from the innermost outwards: of the section around one, or acquired.
struct Level {
  AnyLock* lock = nullptr;
  Level* outer = nullptr;
  bool in_section = false;        ///< acquired in a section, which releases it
  const Nested* asker = nullptr;  ///< as what the section that is executed was asked for
};

/// Who executes a section, and of which lock; restored at its end.
class Inside {
 public:
  Inside(AnyLock* lock, bool for_another)
      : thread_(this_thread),
        around_{thread_.inside, std::exchange(thread_.outer, &around_)},
        for_another_(std::exchange(thread_.for_another, for_another)) {
    thread_.enter(lock);
  }
  ~Inside() {
    if (thread_.outer != &around_) [[unlikely]]
      end_unreleased();
    thread_.leave(around_.lock);
    thread_.outer = around_.outer;
    thread_.for_another = for_another_;
  }
  Inside(const Inside&) = delete;

  /// Whether the calling thread executes a section of the lock, which may be around others, or one
  /// that was asked for in such a section.
  static bool of(const AnyLock* lock) noexcept {
    return any_of([lock](const AnyLock* at) { return at == lock; });
  }
  /// The lock of the section around all that it executes; null: it executes none.
  static AnyLock* outermost() noexcept {
    AnyLock* lock = this_thread.inside;
    for (const Level* at = this_thread.outer; at != nullptr; at = at->outer) {
      if (at->lock != nullptr && !at->in_section) lock = at->lock;
    }
    return lock;
  }
  /// Whether it executes any; not while it waits for a condition in its only one.
  static bool any() noexcept {
    const Level* at = this_thread.outer;
    while (at != nullptr && at->lock == nullptr) at = at->outer;
    return at != nullptr || this_thread.inside != nullptr;
  }
  /// Whether `is(lock)` holds for the lock of one of the sections that it executes, or in which
  /// these were asked for.
  static bool any_of(auto is) noexcept {
    return any_from({this_thread.inside, this_thread.outer}, is);
  }

 private:
  static bool any_from(const Level& innermost, auto is) noexcept;

  Thread& thread_;
  // What was before.
  Level around_;
  bool for_another_;
};

/// A section that the calling thread asks for in others, and waits for: whoever executes it knows
/// in which. Who asked knows anyhow. Lives on the stack of who waits.
struct Nested {
  const Section section;
  const Level asked_in{this_thread.inside, this_thread.outer};
  Thread* const asker = &this_thread;

  /// What is executed, with a Nested as its argument.
  static void run(void* nested) {
    const auto& self = *static_cast<Nested*>(nested);
    Thread& t = this_thread;
    if (self.asker == &t) return self.section.function(self.section.argument);
    Level asked{nullptr, t.outer, false, &self};
    t.outer = &asked;
    self.section();
    if (t.outer != &asked) [[unlikely]]
      end_unreleased();
    t.outer = asked.outer;
  }
};

bool Inside::any_from(const Level& innermost, auto is) noexcept {
  for (const Level* at = &innermost; at != nullptr; at = at->outer) {
    if (at->lock != nullptr && is(at->lock)) return true;
    if (at->asker != nullptr && any_from(at->asker->asked_in, is)) return true;
  }
  return false;
}

/// Threads made in here are no workers, and get no signals but those of their own faults and of
/// profilers: what is sent to the process is for the threads that it knows of.
class NoSignals {
 public:
  NoSignals() {
    sigset_t most;
    sigfillset(&most);
    for (const int own :
         {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPIPE, SIGXFSZ, SIGPROF}) {
      sigdelset(&most, own);
    }
    pthread_sigmask(SIG_BLOCK, &most, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  const OwnThreads own_;
  sigset_t before_{};
};

}  // namespace muster::delegation
