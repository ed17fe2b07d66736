// SPDX-License-Identifier: BSD-3-Clause
// Muster for C++17: a thin face over muster.h. `muster::barrier` stands where `std::barrier` does.
//
//   muster::barrier sync(4);                  // threads claim their ranks at first use
//   sync.arrive_and_wait();
//
//   muster::barrier sync(4, [] { step(); });  // with a completion function
//   sync.arrive_and_wait(rank);               // faster: the caller knows its rank
//
// Of std::barrier's interface there are the constructor, max(), arrive_and_wait(), and, with
// MUSTER_SPLIT in the options, arrive() and wait(). There is no arrive(n) and no arrive_and_drop():
// the number of participants is fixed, and each arrives for itself. Failures throw muster::error.
#pragma once

#if __cplusplus < 201703L
#error "muster/muster.hpp is C++17: compile with -std=c++17 or later"
#else

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/muster.h"

// ThreadSanitizer is told what it does not see in the library; here, in lock.hpp and in mutex.hpp.
#if defined(__SANITIZE_THREAD__)
#define MUSTER_TELLS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MUSTER_TELLS_TSAN 1
#endif
#endif
#ifdef MUSTER_TELLS_TSAN
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

// For clang's thread safety analysis (-Wthread-safety), in lock.hpp and in mutex.hpp.
#if defined(__clang__)
#define MUSTER_THREAD_ANNOTATION(what) __attribute__((what))
#else
#define MUSTER_THREAD_ANNOTATION(what)
#endif

namespace muster {

/// std::lock_guard for clang's analysis: GNU's own is not annotated, so what it guards seems not to
/// be guarded.
template <class Lock>
class MUSTER_THREAD_ANNOTATION(scoped_lockable) guard {
 public:
  explicit guard(Lock& lock) MUSTER_THREAD_ANNOTATION(acquire_capability(lock)) : lock_(lock) {
    lock_.lock();
  }
  ~guard() MUSTER_THREAD_ANNOTATION(release_capability()) { lock_.unlock(); }
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;

 private:
  Lock& lock_;
};

/// What the functions below throw: a muster_status and the text of muster_last_error().
class error : public std::runtime_error {
 public:
  explicit error(int status) : error(status, text(status)) {}
  error(int status, const std::string& what) : std::runtime_error(what), status_(status) {}
  int status() const noexcept { return status_; }

 private:
  static std::string text(int status) {
    const std::string detail = muster_last_error();
    return detail.empty() ? muster_strerror(status) : detail;
  }
  int status_;
};

namespace detail {

inline void check(int status) {
  if (status != MUSTER_OK) throw error(status);
}

template <auto Explain, class Handle>
std::string text_of(const Handle* handle) {
  std::size_t needed = 0;
  check(Explain(handle, nullptr, nullptr, 0, &needed));
  std::string text(needed, '\0');
  check(Explain(handle, nullptr, text.data(), text.size(), nullptr));
  text.resize(text.find('\0'));
  return text;
}

/// Which ranks of a barrier are claimed, and by which thread. Outlives the barrier while a thread
/// remembers it.
class MUSTER_API ranks {
 public:
  explicit ranks(unsigned count) : taken_(count) {}

  unsigned claim() {
    for (unsigned rank = 0; rank < taken_.size(); ++rank) {
      if (!taken_[rank].exchange(true, std::memory_order_acquire)) return rank;
    }
    throw std::logic_error("more threads use this muster::barrier than it has participants");
  }
  /// Release: the next thread to claim the rank continues where this one stopped.
  void give_back(unsigned rank) { taken_[rank].store(false, std::memory_order_release); }

 private:
  std::vector<std::atomic<bool>> taken_;
};

/// The ranks this thread has claimed; given back when it ends.
class MUSTER_API claims {
 public:
  claims() = default;
  claims(const claims&) = delete;
  claims& operator=(const claims&) = delete;
  ~claims() {
    for (const entry& e : entries_) {
      if (const auto owner = e.owner.lock()) owner->give_back(e.rank);
    }
  }

  unsigned rank_in(const std::shared_ptr<ranks>& owner) {
    for (const entry& e : entries_) {
      if (e.key == owner.get() && !e.owner.expired()) return e.rank;
    }
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                  [](const entry& e) { return e.owner.expired(); }),
                   entries_.end());
    entries_.push_back({owner.get(), owner, owner->claim()});
    return entries_.back().rank;
  }

 private:
  struct entry {
    const ranks* key;
    std::weak_ptr<ranks> owner;
    unsigned rank;
  };
  std::vector<entry> entries_;
};

/// One in all libraries, also in those with hidden visibility: else a thread would claim a rank in
/// each.
MUSTER_API inline thread_local claims this_thread_claims;

// What all did before they came is before what anyone does after. Who comes early to the next
// episode is taken for one of this: so a race may be missed, and none is invented.
#ifdef MUSTER_TELLS_TSAN
inline void tell_arrival(void* barrier) { __tsan_release(barrier); }
inline void tell_departure(void* barrier) { __tsan_acquire(barrier); }
#else
inline void tell_arrival(void*) {}
inline void tell_departure(void*) {}
#endif

struct no_completion {
  void operator()() const noexcept {}
};

/// At least 0, also for what is not a number; at most 146 years, so that a deadline can be made.
template <class Rep, class Period>
std::chrono::nanoseconds bounded(std::chrono::duration<Rep, Period> timeout) {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  // Exact up to 104 days. Cast at once to integers, hours::max() would overflow.
  const double ns = std::chrono::duration<double, std::nano>(timeout).count();
  if (!(ns > 0)) return std::chrono::nanoseconds(0);
  return std::chrono::nanoseconds(ns < double{most} ? static_cast<std::int64_t>(ns) : most);
}

/// For a mutex, on any clock: again where it was in vain, since a clock that may be set runs as it
/// likes.
template <class Mutex, class Clock, class Duration>
bool try_until(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& time) {
  for (auto now = Clock::now(); now < time; now = Clock::now()) {
    if (mutex.try_lock_for(time - now)) return true;
  }
  return mutex.try_lock();
}

}  // namespace detail

/// A barrier for the threads of this process. With arrive_and_wait() a thread claims a rank when it
/// first comes and keeps it until it ends: at most `expected` living threads may use it.
/// Thread-safe, but for construction and destruction; may be destroyed as soon as the destroying
/// thread's last wait has returned. Threads may be parked at a static one when the program ends:
/// they wait on.
///
/// The completion function runs once an episode, on one of the waiting threads, after all have
/// arrived and before any leaves. It must not throw: that ends the program
/// (std::terminate()).
template <class CompletionFunction = detail::no_completion>
class barrier {
 public:
  /// That its thread has arrived; for wait().
  class arrival_token {
   public:
    arrival_token(arrival_token&&) noexcept = default;
    arrival_token& operator=(arrival_token&&) noexcept = default;

   private:
    friend class barrier;
    explicit arrival_token(unsigned rank) : rank_(rank) {}
    unsigned rank_;
  };

  /// `options`: NULL, or as in muster.h; participants are overwritten, and so is the completion if
  /// there is a CompletionFunction. `progress` is called with `context`, as there.
  explicit barrier(std::ptrdiff_t expected, CompletionFunction completion = {},
                   const muster_options* options = nullptr)
      : completion_(std::move(completion)) {
    muster_options mine;
    muster_options_init(&mine);
    if (options != nullptr) mine = *options;
    if (expected < 1 || expected > max()) {
      throw error(MUSTER_EINVAL, std::to_string(expected) + " participants: 1 to " +
                                     std::to_string(max()) + " are possible");
    }
    mine.participants = static_cast<unsigned>(expected);
    if constexpr (!std::is_same_v<CompletionFunction, detail::no_completion>) {
      mine.completion = [](void* self) noexcept {
        detail::tell_departure(self);
        static_cast<barrier*>(self)->completion_();
        detail::tell_arrival(self);
        return 0;
      };
      // Both are called with one context, which is ours now: progress gets its own from there.
      progress_ = mine.progress;
      progress_context_ = mine.context;
      if (progress_ != nullptr) {
        mine.progress = [](void* self) {
          const barrier& b = *static_cast<barrier*>(self);
          return b.progress_(b.progress_context_);
        };
      }
      mine.context = this;
    }
    detail::check(muster_barrier_create(&handle_, &mine));
    ranks_ = std::make_shared<detail::ranks>(mine.participants);
  }
  ~barrier() { muster_barrier_destroy(handle_); }
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  static constexpr std::ptrdiff_t max() noexcept { return 65536; }

  void arrive_and_wait() { arrive_and_wait(detail::this_thread_claims.rank_in(ranks_)); }

  /// As the given rank; do not mix with the anonymous form.
  void arrive_and_wait(unsigned rank) {
    detail::tell_arrival(this);
    detail::check(muster_barrier_wait(handle_, rank));
    detail::tell_departure(this);
  }

  /// Arrives without waiting. Needs options with MUSTER_SPLIT, else error MUSTER_ENOTSUP. Unlike
  /// with std::barrier, the token has to be waited for, by the same thread, before it arrives
  /// again.
  [[nodiscard]] arrival_token arrive() {
    return arrive(detail::this_thread_claims.rank_in(ranks_));
  }
  /// As the given rank; do not mix with the anonymous form.
  [[nodiscard]] arrival_token arrive(unsigned rank) {
    detail::tell_arrival(this);
    detail::check(muster_barrier_arrive(handle_, rank));
    return arrival_token(rank);
  }
  /// Until all have arrived in the token's episode.
  void wait(arrival_token&& token) {
    detail::check(muster_barrier_depart(handle_, token.rank_));
    detail::tell_departure(this);
  }

  /// What was chosen and why.
  std::string explain() const { return detail::text_of<muster_barrier_explain>(handle_); }

  muster_barrier* native_handle() noexcept { return handle_; }

 private:
  CompletionFunction completion_;
  int (*progress_)(void* context) = nullptr;
  void* progress_context_ = nullptr;
  muster_barrier* handle_ = nullptr;
  std::shared_ptr<detail::ranks> ranks_;
};

}  // namespace muster

#endif
