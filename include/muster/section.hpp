// SPDX-License-Identifier: BSD-3-Clause
// For lock.hpp: what is around a section, and what it leaves. Not for programs.
#pragma once

#include <cxxabi.h>

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "muster/lock.h"
#include "muster/muster.hpp"

#if defined(__GNUC__) && !defined(MUSTER_TELLS_TSAN)
#define MUSTER_TAKES_AT_ONCE 1
#endif

namespace muster {

namespace detail {

#ifdef MUSTER_TELLS_TSAN
/// What comes before what at a lock, for ThreadSanitizer, which does not see it where the library
/// is built without. Nothing elsewhere.
class order {
 public:
  explicit order(void* lock) : lock_(lock) {}
  void ask(void* request) const { __tsan_release(request); }
  void begin(void* request) const {
    __tsan_acquire(request);
    __tsan_acquire(lock_);
  }
  void end(void* request) const {
    __tsan_release(lock_);
    __tsan_release(request);
  }
  void answered(void* request) const { __tsan_acquire(request); }
  void give_up() const { __tsan_release(lock_); }
  void take_again() const { __tsan_acquire(lock_); }

 private:
  void* lock_;
};
#else
struct order {
  explicit order(void*) noexcept {}
  void ask(void*) const noexcept {}
  void begin(void*) const noexcept {}
  void end(void*) const noexcept {}
  void answered(void*) const noexcept {}
  void give_up() const noexcept {}
  void take_again() const noexcept {}
};
#endif

#ifdef __GNUC__
/// Gives a lock back as the library does (src/lock/auto.hpp); false: it is still the caller's, and
/// others' requests are to be looked at. A template over the lock's words: the library's checker
/// has its own.
template <class Row>
[[gnu::always_inline]] inline bool give_at_once(const Row& row) {
  if (row.is_wanted()) return false;
  row.give();
  return !row.is_dozing() || !row.take();
}
#endif

#ifdef MUSTER_TAKES_AT_ONCE
/// The words of an `auto` lock.
struct lock_row {
  muster_lock_row* words;

  bool take() const noexcept {
    std::uint32_t free = 0;
    return __atomic_compare_exchange_n(&words->held, &free, 1U, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
  }
  bool is_wanted() const noexcept { return __atomic_load_n(&words->wanted, __ATOMIC_RELAXED) != 0; }
  void give() const noexcept { __atomic_store_n(&words->held, 0U, __ATOMIC_RELEASE); }
  bool is_dozing() const noexcept {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // enough: who sleeps has passed a heavy one
    return __builtin_expect(__atomic_load_n(&words->dozing, __ATOMIC_RELAXED) % 2 != 0, 0);
  }
};

/// The way of a thread that has used an `auto` lock last and finds it free: a compare-and-swap
/// and a store, as the library does it (src/delegation/delegated.hpp), in line.
class at_once {
 public:
  /// Whether the lock is now the calling thread's, which gives it back at the end.
  at_once(const muster_lock_words& words, muster_lock* lock) noexcept : row_{words.row} {
    if (muster_this_thread.number != words.number) return;
    taken_ = row_.take();
    if (taken_) {
      __atomic_store_n(&muster_this_thread.inside, lock, __ATOMIC_RELAXED);
    } else {
      muster_this_thread.number = 0;  // the library need not try the same
    }
  }
  /// Also where the section throws, or its thread is cancelled in there.
  ~at_once() {
    if (!taken_) return;
    if (!give_at_once(row_)) {
      muster_give_back();
      return;
    }
    std::uint64_t* const executed = muster_this_thread.executed;
    __atomic_store_n(executed, *executed + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&muster_this_thread.inside, nullptr,
                     __ATOMIC_RELEASE);  // the lock may end now
  }
  at_once(const at_once&) = delete;
  at_once& operator=(const at_once&) = delete;
  explicit operator bool() const noexcept { return taken_; }

 private:
  lock_row row_;  ///< kept here: the section may be the end of the muster::lock
  bool taken_ = false;
};
#endif

/// Around a section. If its thread is cancelled in there, and in a handler, it leaves its handlers
/// first, as it will do anyway: in one `catch (...)` ends the program, since a cancellation is no
/// exception of C++. What was handled lives as long as the thread.
struct cancelled_in_handler {
  bool has_returned = false;  ///< the section

  ~cancelled_in_handler() {
    if (!has_returned && std::uncaught_exceptions() == 0) leave_handlers();
  }
  static void leave_handlers() {
    static thread_local std::vector<std::exception_ptr> handled;
    while (std::exception_ptr next = std::current_exception()) {
      handled.push_back(std::move(next));
      abi::__cxa_end_catch();
    }
  }
};

/// What a section may return. What cannot be moved is returned in a std::unique_ptr, or as a
/// reference to where it stays.
template <class R>
concept can_be_moved_to_the_caller =
    std::is_void_v<R> || std::is_reference_v<R> || std::is_move_constructible_v<R>;

/// A section that a copy can stand for: it is small, changes nothing in itself, and returns nothing
/// that points into it.
template <class F, class R, class... Arguments>
concept is_as_good_as_its_copy = std::copy_constructible<F> &&
                                     std::invocable<const F&, Arguments...> &&
                                     std::is_trivially_copyable_v<F> &&
                                     sizeof(F) <= 8 * sizeof(void*) &&
                                 (std::is_void_v<R> || std::is_arithmetic_v<R>);

/// That copy, or else the section itself.
template <class F, class R, class... Arguments>
using passed = std::conditional_t<is_as_good_as_its_copy<F, R, Arguments...>, F, F&>;

/// `section(value)` as a section.
template <class F, class T>
auto bound(F& section, T& value) {
  struct held {
    passed<F, std::invoke_result_t<F&, T&>, T&> section;
  };
  return [held = held{section}, &value] { return std::invoke(held.section, value); };
}

/// What a section left: a value, nothing, or what it threw.
template <class R>
class outcome {
  struct nothing {};
  using stored = std::conditional_t<
      std::is_void_v<R>, nothing,
      std::conditional_t<std::is_reference_v<R>, std::remove_reference_t<R>*, std::optional<R>>>;

 public:
  /// Whether its bytes may go elsewhere and come back: an exception_ptr is an address.
  static constexpr bool can_travel = std::is_trivially_copyable_v<stored>;
  template <class F>
  void run(F& section) {
    try {
      cancelled_in_handler guard;
      if constexpr (std::is_void_v<R>) {
        section();
      } else if constexpr (std::is_reference_v<R>) {
        auto&& result = section();
        value_ = std::addressof(result);
      } else {
        value_.emplace(section());
      }
      guard.has_returned = true;
    } catch (...) {
      error_ = std::current_exception();
      if (error_ == nullptr) throw;  // no exception: the caller's own thread is cancelled
    }
  }
  R take() {
    if (error_) [[unlikely]]
      std::rethrow_exception(std::move(error_));
    if constexpr (std::is_reference_v<R>) {
      return static_cast<R>(*value_);
    } else if constexpr (!std::is_void_v<R>) {
      return std::move(*value_);
    }
  }

 private:
  [[no_unique_address]] stored value_{};
  std::exception_ptr error_;
};

}  // namespace detail

}  // namespace muster
