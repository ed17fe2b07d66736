// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/thread.hpp"

#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

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
    unsigned word = 0;
    while (word < words && taken_[word] == ~std::uint64_t{0}) ++word;
    if (word == words) {
      throw Error(Status::no_memory, "more than " + std::to_string(seats_max) +
                                         " threads use locks at once: end some");
    }
    const unsigned number = word * 64 + static_cast<unsigned>(std::countr_one(taken_[word]));
    mark(number);
    // After all C++ thread-locals are gone; again, if one of a later key comes back here.
    pthread_setspecific(at_exit_, this);
    return number;
  }

  /// A thread's; but those stay used, by whomever they were left, in which requests are pending.
  void give_back(const Thread& t) {
    const std::scoped_lock lock(mutex_);
    for (unsigned i = 0; i < t.seats; ++i) taken_[t.seat(i) / 64] &= ~bit_of(t.seat(i));
    for (unsigned word = 0; word < words; ++word) {
      std::uint64_t left = used_seats[word].load(std::memory_order_relaxed) & ~taken_[word];
      for (; left != 0; left &= left - 1) {
        let_go(word * 64 + static_cast<unsigned>(std::countr_zero(left)));
      }
    }
  }

  void watch(const LeavesRequests& where) {
    const std::scoped_lock lock(mutex_);
    watched_.push_back(&where);
  }
  void unwatch(const LeavesRequests& where) {
    const std::scoped_lock lock(mutex_);
    std::erase(watched_, &where);
  }

  /// In a fork's child: the other threads' are free, and what is pending in them is the parent's.
  /// Nothing is held across a fork, whose other handlers may wait for threads that end: so all is
  /// made anew, as another thread may have been in the middle of a change.
  void keep_only(const Thread& t) {
    new (&mutex_) std::mutex;
    new (&watched_) std::vector<const LeavesRequests*>;
    for (auto& bits : taken_) bits = 0;
    for (auto& bits : used_seats) bits.store(0, std::memory_order_relaxed);
    for (unsigned i = 0; i < t.seats; ++i) mark(t.seat(i));
  }

 private:
  static std::uint64_t bit_of(unsigned number) { return std::uint64_t{1} << number % 64; }
  void mark(unsigned number) {
    taken_[number / 64] |= bit_of(number);
    used_seats[number / 64].fetch_or(bit_of(number), std::memory_order_relaxed);
  }
  void let_go(unsigned number) {
    for (const LeavesRequests* where : watched_) {
      if (where->has_pending(number)) return;
    }
    used_seats[number / 64].fetch_and(~bit_of(number), std::memory_order_relaxed);
  }

  static void leave() {
    Thread& t = this_thread;
    instance().give_back(t);
    std::free(t.others);
    t.others = nullptr;
    t.seats = 0;
    seated_threads.fetch_sub(1, std::memory_order_relaxed);
    t.last_lock = 0;
    t.quick = 0;
    delete t.kept;
    t.kept = nullptr;
  }

  static constexpr unsigned words = seats_max / 64;

  std::mutex mutex_;
  std::uint64_t taken_[words] = {};
  std::vector<const LeavesRequests*> watched_;
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
  for (Level* at = t.outer; at != nullptr; at = at->outer) at->asker = nullptr;  // is not here
  t.todo = 0;
  if (t.kept != nullptr) {
    t.kept->posts.clear();
    t.kept->next = 0;
  }
  seated_threads.store(t.seats > 0 ? 1 : 0, std::memory_order_relaxed);
  Seats::instance().keep_only(t);
}

void say(std::string_view why) { static_cast<void>(!write(STDERR_FILENO, why.data(), why.size())); }

/// At load, and made before other static objects: a fork's child never finds it half done.
[[gnu::constructor(101)]] void watch_forks() {
  Seats::instance();
  if (pthread_atfork(nullptr, nullptr, begin_child) != 0) std::abort();  // no memory at all
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

void Birth::refuse(const char* what, const char* instead) {
  throw Error(Status::busy, std::string(what) +
                                " before fork(), and the threads that use and serve it are the "
                                "parent's: " +
                                instead);
}

/// What was handled lives as long as the thread: destructors on the way may look at it.
void CancelledInHandler::leave_handlers() {
  static thread_local std::vector<std::exception_ptr> handled;
  while (std::exception_ptr next = std::current_exception()) {
    handled.push_back(std::move(next));
    abi::__cxa_end_catch();
  }
}

void end_executors_child() {
  say("muster: a fork's child came back from a section that another thread executes than the one "
      "that asked for it: let it call exec or _exit in there\n");
  _exit(EXIT_FAILURE);
}

void end_unreleased() noexcept {
  say("muster: a section, or what it does without its lock, has left and not released a lock that "
      "it has acquired\n");
  std::terminate();
}

std::atomic<unsigned> seated_threads{0};
std::atomic<std::uint64_t> used_seats[seats_max / 64];

void watch_seats(const LeavesRequests& where) { Seats::instance().watch(where); }

void unwatch_seats(const LeavesRequests& where) noexcept { Seats::instance().unwatch(where); }

}  // namespace muster::delegation
