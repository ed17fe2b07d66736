// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/thread.hpp"

#include <pthread.h>
#include <unistd.h>

#include <bitset>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <string_view>

#include "delegation/generation.hpp"
#include "machine/error.hpp"

namespace muster::delegation {
namespace {

/// Which numbers are taken. Never destroyed: threads end after main does.
class Seats {
 public:
  Seats() : has_key_(pthread_key_create(&at_exit_, [](void*) { leave(); }) == 0) {}

  static Seats& instance() {
    static Seats* const seats = new Seats;
    return *seats;
  }

  unsigned take() {
    if (!has_key_) {
      throw Error(Status::system, "no key left for what a thread gives back at its end");
    }
    const std::scoped_lock lock(mutex_);
    unsigned number = first_free_;
    while (number < ever_ && taken_[number]) ++number;
    if (number >= seats_max) {
      throw Error(Status::no_memory, "more than " + std::to_string(seats_max) +
                                         " threads use locks at once: end some");
    }
    if (number == ever_) ++ever_;
    taken_[number] = true;
    first_free_ = number + 1;
    if (is_used(number)) {
      --left_;
    } else {
      use(number);
    }
    // After all C++ thread-locals are gone; again, if one of a later key comes back here.
    pthread_setspecific(at_exit_, this);
    return number;
  }

  void give_back(unsigned number) {
    const std::scoped_lock lock(mutex_);
    taken_[number] = false;
    if (number < first_free_) first_free_ = number;
    ++left_;
    let_go(number);
  }
  /// Those that others have left, whose requests may be executed by now.
  void look_after_left() {
    const std::scoped_lock lock(mutex_);
    unsigned looks = left_;
    for (unsigned at = 0; looks > 0; ++at) {
      at = next_used_seat(at, ever_);
      if (taken_[at]) continue;
      --looks;
      let_go(at);
    }
  }

  void watch(LeavesRequests& where) {
    const std::scoped_lock lock(mutex_);
    where.watched_next = watched_;
    watched_ = &where;
  }
  void unwatch(LeavesRequests& where) {
    const std::scoped_lock lock(mutex_);
    for (LeavesRequests** at = &watched_; *at != nullptr; at = &(*at)->watched_next) {
      if (*at != &where) continue;
      *at = where.watched_next;
      return;
    }
  }

  unsigned ever() {
    const std::scoped_lock lock(mutex_);
    return ever_;
  }

  /// In a fork's child: the other threads' are free, and what is pending in them is the parent's.
  /// Nothing is held across a fork, whose other handlers may wait for threads that end: so all is
  /// made anew, as another thread may have been in the middle of a change.
  void keep_only(const Thread& t) {
    new (&mutex_) std::mutex;
    taken_.reset();
    for (auto& bits : used_seats) bits.store(0, std::memory_order_relaxed);
    for (unsigned i = 0; i < t.seats; ++i) {
      taken_[t.seat(i)] = true;
      use(t.seat(i));
    }
    first_free_ = 0;
    left_ = 0;
    watched_ = nullptr;
  }

 private:
  static std::uint64_t bit_of(unsigned number) { return std::uint64_t{1} << number % 64; }
  static bool is_used(unsigned number) { return next_used_seat(number, number + 1) == number; }
  static void use(unsigned number) {
    used_seats[number / 64].fetch_or(bit_of(number), std::memory_order_relaxed);
  }
  /// Unless requests of its last thread, which has ended, are pending.
  void let_go(unsigned number) {
    for (const LeavesRequests* at = watched_; at != nullptr; at = at->watched_next) {
      if (at->has_pending(number)) return;
    }
    used_seats[number / 64].fetch_and(~bit_of(number), std::memory_order_relaxed);
    --left_;
  }

  static void leave() {
    Thread& t = this_thread;
    for (unsigned i = t.seats; i-- > 0;) {
      instance().give_back(t.seat(i));
    }
    instance().look_after_left();
    std::free(t.others);
    t.others = nullptr;
    t.seats = 0;
    seated_threads.fetch_sub(1, std::memory_order_relaxed);
    t.last_lock = 0;
    t.quick = 0;
    delete t.kept;
    t.kept = nullptr;
  }

  std::mutex mutex_;
  std::bitset<seats_max> taken_;
  unsigned ever_ = 0;        // of the numbers
  unsigned first_free_ = 0;  // none below is free
  unsigned left_ = 0;        // used, but nobody has them
  LeavesRequests* watched_ = nullptr;
  pthread_key_t at_exit_{};
  const bool has_key_;
};

/// What the calling thread, the only one, has of its parent and would wait for. Posts that it has
/// kept are the parent's to send.
void begin_child() {
  current_generation.fetch_add(1);
  Thread& t = this_thread;
  t.quick = 0;
  t.last_lock = 0;  // who finds it by this does not ask whose process it is
  t.id = gettid();
  t.serving = nullptr;
  t.servant = nullptr;
  t.asked_in = nullptr;  // who asks is not here, nor is its stack
  t.todo = 0;
  if (t.kept != nullptr) {
    t.kept->posts.clear();
    t.kept->next = 0;
  }
  seated_threads.store(t.seats > 0 ? 1 : 0, std::memory_order_relaxed);
  Seats::instance().keep_only(t);
}

int watching_forks = 0;  ///< 0, or why not

/// At load, and made before other static objects: a fork's child never finds it half done.
[[gnu::constructor(101)]] void begin_watching_forks() {
  Seats::instance();
  watching_forks = pthread_atfork(nullptr, nullptr, begin_child);
}

}  // namespace

thread_local constinit Thread this_thread;

unsigned take_seat(unsigned depth) {
  Thread& t = this_thread;
  t.error = &errno;
  t.id = gettid();
  while (t.seats <= depth) {
    if (t.seats > 0) {
      void* const grown = std::realloc(t.others, t.seats * sizeof(unsigned));
      if (grown == nullptr) throw std::bad_alloc();
      t.others = static_cast<unsigned*>(grown);
    }
    const unsigned number = Seats::instance().take();
    (t.seats == 0 ? t.first : t.others[t.seats - 1]) = number;
    if (t.seats++ == 0) seated_threads.fetch_add(1, std::memory_order_relaxed);
  }
  return t.seat(depth);
}

void watch_forks() {
  if (watching_forks != 0) {
    throw Error(Status::no_memory, "no memory for what a fork's child is told");
  }
}

void Birth::refuse(const char* what, const char* instead) {
  throw Error(Status::busy, std::string(what) +
                                " before fork(), and the threads that use and serve it are the "
                                "parent's: " +
                                instead);
}

void end_executors_child() {
  constexpr std::string_view why =
      "muster: a fork's child came back from a section that another thread executes than the one "
      "that asked for it: let it call exec or _exit in there\n";
  static_cast<void>(!write(STDERR_FILENO, why.data(), why.size()));
  _exit(EXIT_FAILURE);
}

void end_unreleased() noexcept {
  constexpr std::string_view why =
      "muster: a section, or what it does without its lock, has left and not released a lock that "
      "it has acquired\n";
  static_cast<void>(!write(STDERR_FILENO, why.data(), why.size()));
  std::terminate();
}

unsigned seats_ever() { return Seats::instance().ever(); }

std::atomic<unsigned> seated_threads{0};
std::atomic<std::uint64_t> used_seats[seats_max / 64];

void watch_seats(LeavesRequests& where) { Seats::instance().watch(where); }

void unwatch_seats(LeavesRequests& where) noexcept { Seats::instance().unwatch(where); }

}  // namespace muster::delegation
