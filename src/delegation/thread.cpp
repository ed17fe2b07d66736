// SPDX-License-Identifier: BSD-3-Clause
#include "delegation/thread.hpp"

#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "delegation/cpus.hpp"
#include "delegation/generation.hpp"
#include "machine/error.hpp"

namespace muster::delegation {
namespace {

/// By seat, with the mutex; null: of none. Zero from the start, so that only what is used is in
/// memory.
Thread* thread_in[seats_max];

/// What threads have of them. Never destroyed: threads end after main does.
class ThreadSeats {
 public:
  ThreadSeats() : has_key_(pthread_key_create(&at_exit_, [](void*) { leave(); }) == 0) {}

  static ThreadSeats& instance() {
    static ThreadSeats* const seats = new ThreadSeats;
    return *seats;
  }

  unsigned take(Thread& thread) {
    if (!has_key_) {
      throw Error(Status::system, "no key left for what a thread gives back at its end");
    }
    const unsigned number = seats_.take(machine_, seats_max);
    if (number == seats_max) {
      throw Error(Status::no_memory, "more than " + std::to_string(seats_max) +
                                         " threads use locks at once: end some");
    }
    // After all C++ thread-locals are gone; again, if one of a later key comes back here.
    if (pthread_setspecific(at_exit_, this) != 0) {
      give_back(1, [number](unsigned) { return number; });
      throw std::bad_alloc();
    }
    Mutual::within(seats_.mutex, [&] {
      thread_in[number] = thread.has_ended ? nullptr : &thread;  // it may not come to leave()
    });
    return number;
  }

  bool any(const std::function<bool(const Thread&, unsigned)>& is) {
    return Mutual::within(seats_.mutex, [&] {
      for (unsigned seat = seats_.next(machine_, 0, seats_max); seat < seats_max;
           seat = seats_.next(machine_, seat + 1, seats_max)) {
        const Thread* const thread = thread_in[seat];
        if (thread != nullptr && thread != &this_thread && is(*thread, seat)) return true;
      }
      return false;
    });
  }

  void watch(const LeavesRequests& where) {
    Mutual::within(seats_.mutex, [&] { watched_.push_back(&where); });
  }
  void unwatch(const LeavesRequests& where) {
    Mutual::within(seats_.mutex, [&] { std::erase(watched_, &where); });
  }

  /// In a fork's child: the other threads' are free, and what is pending in them is the parent's.
  /// Nothing is held across a fork, whose other handlers may wait for threads that end: so all is
  /// made anew, as another thread may have been in the middle of a change.
  void keep_only(const Thread& t) {
    new (&seats_) locks::Seats<SeatMachine>;
    new (&watched_) std::vector<const LeavesRequests*>;
    for (unsigned seat = seats_.next(machine_, 0, seats_max); seat < seats_max;
         seat = seats_.next(machine_, seat + 1, seats_max)) {
      if (thread_in[seat] != &t) thread_in[seat] = nullptr;
    }
    for (unsigned word = 0; word < SeatMachine::words; ++word) {
      machine_.set_taken(word, 0);
      machine_.set_used(word, 0);
    }
    for (unsigned i = 0; i < t.seats; ++i) seats_.hold(machine_, t.seat(i));
  }

 private:
  static void leave() {
    Thread& t = this_thread;
    instance().give_back(t.seats, [&t](unsigned i) { return t.seat(i); });
    std::free(t.others);
    t.others = nullptr;
    t.seats = 0;
    t.has_ended = true;
    seated_threads.fetch_sub(1, std::memory_order_relaxed);
    t.last_lock = 0;
    t.quick = 0;
    delete t.kept;
    t.kept = nullptr;
    delete t.place;
    t.place = nullptr;
  }
  void give_back(unsigned count, auto seat_of) {
    Mutual::within(seats_.mutex, [&] {
      for (unsigned i = 0; i < count; ++i) thread_in[seat_of(i)] = nullptr;
    });
    seats_.give_back(machine_, count, seat_of, seats_max, [this](unsigned seat) {
      return std::any_of(watched_.begin(), watched_.end(),
                         [seat](const auto* where) { return where->has_pending(seat); });
    });
  }

  SeatMachine machine_;
  locks::Seats<SeatMachine> seats_{};
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
  t.todo = 0;
  for (Level* at = t.outer; at != nullptr; at = at->outer) {
    at->asker = nullptr;  // is not here
    if (at->in_section) ++t.todo;
  }
  if (t.kept != nullptr) {
    t.kept->posts.clear();
    t.kept->next = 0;
  }
  seated_threads.store(t.seats > 0 ? 1 : 0, std::memory_order_relaxed);
  ThreadSeats::instance().keep_only(t);
}

void say(std::string_view why) { static_cast<void>(!write(STDERR_FILENO, why.data(), why.size())); }

/// At load, and made before other static objects: a fork's child never finds it half done.
[[gnu::constructor(101)]] void watch_forks() {
  ThreadSeats::instance();
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
    const unsigned number = ThreadSeats::instance().take(t);
    (t.seats == 0 ? t.first : t.others[t.seats - 1]) = number;
    if (t.seats++ != 0) continue;
    // Where nobody waits for long nobody else counts (Port::finds_crowd).
    if (seated_threads.fetch_add(1, std::memory_order_relaxed) >= cpus_last_counted() &&
        t.serving == nullptr) {
      cpus_of_process();
    }
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
SeatMachine::Bits SeatMachine::taken_[words];
std::atomic<SeatMachine::Bits> SeatMachine::used_[words];

bool any_thread(const std::function<bool(const Thread& thread, unsigned seat)>& is) {
  return ThreadSeats::instance().any(is);
}

void watch_seats(const LeavesRequests& where) { ThreadSeats::instance().watch(where); }

void unwatch_seats(const LeavesRequests& where) noexcept { ThreadSeats::instance().unwatch(where); }

}  // namespace muster::delegation
