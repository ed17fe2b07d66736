// SPDX-License-Identifier: BSD-3-Clause
// What the calling thread is to locks: its seats, and the sections it is in. A seat is a small
// number that no other thread has, the lowest that is free; a thread takes one when it first needs
// it and gives it back when it ends. A section that executes another lock's section needs a second
// seat: the first one's request may still be pending.
#pragma once

#include <atomic>
#include <cstdint>

namespace muster::delegation {

class AnyLock;
class Inside;
class Kept;
class Station;

/// Threads that use locks at once, and sections nested in them, at most; beyond, execute() throws
/// Error(no_memory). Address space, not memory, is set aside for so many.
inline constexpr unsigned seats_max = 16'384;

struct Thread {
  // The first line: all that a section of the lock used last needs.

  /// Number of the lock of which it may execute a section at once, if that is free and it is
  /// outside of all sections: it does not delegate there, and has nothing pending. 0: of none.
  std::uint64_t quick = 0;
  void* last_seat = nullptr;  ///< what it has at the lock that it used last
  void* last_habit = nullptr;
  AnyLock* inside = nullptr;  ///< the lock whose section it executes
  unsigned depth = 0;         ///< of sections that it waits for or executes, but not at once
  unsigned todo = 0;          ///< posts that its sections have left, for this thread to see to

  unsigned seats = 0;  ///< that it has
  unsigned first = 0;  ///< the first of them
  unsigned* others = nullptr;
  const Inside* outer = nullptr;  ///< the sections around this one
  Kept* kept = nullptr;           ///< posts of sections, until it is outside of all
  Station* serving = nullptr;     ///< whose requests it executes, if it is a server's
  void* servant = nullptr;        ///< what it is there
  std::uint64_t last_lock = 0;    ///< number of the lock that it used last, outside of any section
  int* error = nullptr;           ///< where its errno is: asking costs a call
  int id = 0;                     ///< to the operating system; once it has a seat
  bool for_another = false;       ///< the section is another client's
};

/// The calling thread's. Plain data: no destructor runs before the last use.
/// (Not with a sanitizer that tests its address for null: the linker's relaxation of that model
/// loses the flags it tests.)
#if !defined(__SANITIZE_ADDRESS__)
[[gnu::tls_model("initial-exec")]]
#endif
extern thread_local constinit Thread this_thread;

/// Takes the seat for this depth; it is kept until the thread ends. Throws Error(no_memory).
unsigned take_seat(unsigned depth);

/// How many seats have been taken at once, at most.
unsigned seats_ever();

/// One level deeper, for as long as it lives.
class Depth {
 public:
  Depth() : thread_(this_thread), seat_(seat(thread_)) { ++thread_.depth; }
  ~Depth() { --thread_.depth; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;
  unsigned seat() const { return seat_; }
  Thread& thread() const { return thread_; }

 private:
  static unsigned seat(Thread& t) {
    if (t.depth < t.seats) [[likely]]
      return t.depth == 0 ? t.first : t.others[t.depth - 1];
    return take_seat(t.depth);
  }

  Thread& thread_;
  unsigned seat_;
};

/// Who executes a section, and of which lock; restored at its end.
class Inside {
 public:
  Inside(AnyLock* lock, bool for_another)
      : thread_(this_thread),
        lock_(thread_.inside),
        outer_(thread_.outer),
        for_another_(thread_.for_another) {
    thread_.inside = lock;
    thread_.outer = this;
    thread_.for_another = for_another;
  }
  ~Inside() {
    thread_.inside = lock_;
    thread_.outer = outer_;
    thread_.for_another = for_another_;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  /// Whether the calling thread executes a section of the lock, which may be around others.
  static bool of(const AnyLock* lock) noexcept {
    const Thread& t = this_thread;
    bool found = t.inside == lock;
    for (const Inside* at = t.outer; at != nullptr && !found; at = at->outer_) {
      found = at->lock_ == lock;
    }
    return found;
  }
  /// Whether it executes any; not while it waits for a condition in its only one.
  static bool any() noexcept {
    const Thread& t = this_thread;
    bool found = t.inside != nullptr;
    for (const Inside* at = t.outer; at != nullptr && !found; at = at->outer_) {
      found = at->lock_ != nullptr;
    }
    return found;
  }

 private:
  Thread& thread_;
  // What was before.
  AnyLock* lock_;
  const Inside* outer_;
  bool for_another_;
};

/// The process's generation: a fork's child has another, and none of its parent's threads.
inline std::atomic<unsigned> current_generation{1};
inline unsigned generation() noexcept { return current_generation.load(std::memory_order_relaxed); }
/// From now on; once is enough.
void watch_forks();

}  // namespace muster::delegation
