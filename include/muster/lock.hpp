// SPDX-License-Identifier: BSD-3-Clause
// Delegated critical sections for C++20: a thin face over lock.h.
//
//   muster::lock lock;
//   auto next = lock.execute([&] { return ++n; });       // in mutual exclusion; with its result
//   lock.post([&] { ++n; });                             // some time; does not wait
//   muster::future<int> later = lock.async([&] { return ++n; });
//
//   std::lock_guard guard(lock);                         // for what stays where it is
//
//   muster::guarded<std::map<int, int>> table;           // a value reachable only inside its lock
//   table.execute([](auto& map) { map[1] = 2; });
//
// A section runs on whatever thread executes it (see lock.h). What it throws reaches the caller of
// execute(), or of future::get(). It is in no handler of its caller's: where another thread
// executes it, `throw;` ends the program. Failures throw muster::error.
#pragma once

#if __cplusplus <= 201703L
#error "muster/lock.hpp is C++20: -std=c++20; in CMake target_compile_features(... cxx_std_20)"
#else

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "muster/lock.h"
#include "muster/muster.hpp"
#include "muster/section.hpp"

namespace muster {

class delegating_lock;
/// The class has another name, since one of its functions has this.
using lock = delegating_lock;

/// The result of a section that was not waited for. Its destructor waits.
///
/// In a section, waiting executes what would otherwise come after that section there and then
/// (muster_lock_prepare_wait). A wait that cannot end throws muster::error: in a section, for one
/// of the same lock that another thread has posted, where the destructor ends the program; and in a
/// fork's child, for its parent's, where the destructor does not wait.
template <class R>
class future {
 public:
  future() = default;
  future(future&&) noexcept = default;
  future& operator=(future&& other) noexcept {
    if (this != &other) {
      finish();
      state_ = std::move(other.state_);
      of_ = other.of_;
      posted_by_ = other.posted_by_;
    }
    return *this;
  }
  ~future() { finish(); }

  /// Whether it has a result to come: not if it was made without, moved from, or got.
  bool valid() const noexcept { return state_ != nullptr; }
  /// This and the next two throw muster::error (MUSTER_EINVAL) if it is not valid().
  bool is_ready() const {
    require_valid();
    return has_result();
  }
  void wait() const {
    require_valid();
    const int refused = prepare_wait();
    if (refused == MUSTER_EBUSY) {
      throw error(refused, "the section was posted before fork(): its result is the parent's");
    }
    if (refused != MUSTER_OK) throw error(refused);
    state_->ready.wait(0, std::memory_order_acquire);
  }
  /// Once: the result, or what the section threw.
  R get() {
    wait();
    const auto mine = std::move(state_);
    return mine->result.take();
  }

 private:
  friend class delegating_lock;
  struct state {
    virtual ~state() = default;
    detail::outcome<R> result;
    std::atomic<std::uint32_t> ready{0};
  };
  future(std::unique_ptr<state> made, muster_lock* of, unsigned posted_by)
      : state_(std::move(made)), of_(of), posted_by_(posted_by) {}

  void require_valid() const {
    if (valid()) [[likely]]
      return;
    throw error(
        MUSTER_EINVAL,
        "this future has no result: it was got before, moved from, or never one of async()");
  }
  bool has_result() const noexcept { return state_->ready.load(std::memory_order_acquire) != 0; }
  /// MUSTER_OK: it is ready, or will be.
  int prepare_wait() const noexcept {
    for (int polls = 0; polls < 1000; ++polls) {
      if (has_result()) return MUSTER_OK;
    }
    if (posted_by_ != muster_process_number()) return MUSTER_EBUSY;
    const int status = muster_lock_prepare_wait(of_);
    return has_result() ? MUSTER_OK : status;
  }
  void finish() noexcept {
    if (state_ == nullptr) return;
    if (prepare_wait() == MUSTER_EBUSY) {
      static_cast<void>(state_.release());  // the parent's
    } else {
      wait();  // if it throws, the program ends with the reason
    }
  }

  std::unique_ptr<state> state_;
  muster_lock* of_ = nullptr;  ///< exists at least until it is ready
  unsigned posted_by_ = 0;     ///< the process
};

/// A server thread; lives at least as long as this object, and its locks outlive it.
class server {
 public:
  /// `where`: CPUs such as "3" or "2-3", or "pack" or "spread" (RCLLockInitNUMA).
  explicit server(const std::string& where = "pack") {
    detail::check(muster_server_start(&handle_, where.c_str()));
  }
  ~server() { muster_server_destroy(handle_); }
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  void move(const std::string& where) { detail::check(muster_server_move(handle_, where.c_str())); }
  std::string explain() const { return detail::text_of<muster_server_explain>(handle_); }
  muster_place place() const {
    muster_place now{};
    detail::check(muster_server_get_place(handle_, &now));
    return now;
  }
  muster_server_counters counters() const {
    muster_server_counters now{};
    detail::check(muster_server_get_counters(handle_, &now, sizeof now));
    return now;
  }
  muster_server* native_handle() noexcept { return handle_; }

 private:
  muster_server* handle_ = nullptr;
};

/// How a lock is made: its kind (see muster_lock_names()), and whose server executes its sections;
/// null: the process's own. Or where a server of the lock's own is to be: "pack", "spread" or CPUs.
struct lock_options {
  const char* kind = "auto";
  server* of = nullptr;
  const char* own_server = nullptr;
  bool unlocks = false;               ///< sections call unlocked()
  std::chrono::nanoseconds turn{0};   ///< muster_lock_options::turn_ns
  std::chrono::nanoseconds share{0};  ///< muster_lock_options::share_ns
  unsigned turn_sections = 0;         ///< muster_lock_options::turn_sections
};

/// Executes critical sections, and is TimedLockable for those that stay where they are: for
/// std::lock_guard, unique_lock, scoped_lock, condition_variable_any. It is not SharedLockable: who
/// only reads calls execute_shared(), or lock(), which excludes all others. Thread-safe, but for
/// construction and destruction. What clang's thread safety analysis takes for a capability.
class MUSTER_THREAD_ANNOTATION(capability("mutex")) delegating_lock {
 public:
  explicit delegating_lock(const lock_options& chosen) {
    muster_lock_options options;
    muster_lock_options_init(&options);
    options.kind = chosen.kind;
    if (chosen.of != nullptr) options.server = chosen.of->native_handle();
    options.own_server = chosen.own_server;
    options.unlocks = chosen.unlocks ? 1 : 0;
    options.turn_ns = chosen.turn.count();
    options.share_ns = chosen.share.count();
    options.turn_sections = chosen.turn_sections;
    detail::check(muster_lock_create(&handle_, &options));
    muster_lock_get_words(handle_, &words_);
  }
  explicit delegating_lock(const char* kind = "auto", server* of = nullptr)
      : delegating_lock(lock_options{kind, of}) {}
  ~delegating_lock() {
    muster_lock_destroy(handle_);
    detail::order(this).take_again();  // after all that was posted
  }
  delegating_lock(const delegating_lock&) = delete;
  delegating_lock& operator=(const delegating_lock&) = delete;

  /// Executes the section and returns what it returns: nothing, a reference, or a value, which has
  /// to be movable.
  template <class F>
  requires(detail::can_be_moved_to_the_caller<std::invoke_result_t<F&>>) auto execute(F&& section)
      -> std::invoke_result_t<F&> {
    using R = std::invoke_result_t<F&>;
#ifdef MUSTER_TAKES_AT_ONCE
    if (const detail::at_once taken(words_, handle_); taken) [[likely]]
      return section();
#endif
    // The library gets a copy where nobody can tell. So what the section above captured may stay in
    // registers, from memory its first load would wait for the lock; and goes with the request.
    using Passed = detail::passed<F, R>;
    return execute_by<muster_lock_execute_copy, R, Passed>(section, copied<Passed, R>);
  }
  /// The same for a section that only reads what the lock protects: beside others of this kind
  /// where the lock is "phase-fair" (muster_lock_execute_shared).
  template <class F>
  requires(detail::can_be_moved_to_the_caller<std::invoke_result_t<F&>>) auto execute_shared(
      F&& section) -> std::invoke_result_t<F&> {
    return execute_by<muster_lock_execute_shared, std::invoke_result_t<F&>, F&>(section);
  }

  /// Executes the section here if the lock is free at once: true, or what it returns, which is
  /// no reference, in a std::optional; else false, or nothing.
  template <class F>
  auto try_execute(F&& section) {
    using R = std::invoke_result_t<F&>;
    const std::unique_lock<delegating_lock> taken(*this, std::try_to_lock);
    if constexpr (std::is_void_v<R>) {
      if (taken) section();
      return taken.owns_lock();
    } else {
      return taken ? std::optional<R>(section()) : std::nullopt;
    }
  }

  /// muster_lock_acquire() and muster_lock_release(): for the kinds that can. What they refuse
  /// throws muster::error, so that what is not unlocked where it was locked ends a program whose
  /// guard unlocks it.
  void lock() MUSTER_THREAD_ANNOTATION(acquire_capability()) {
    detail::check(muster_lock_acquire(handle_));
    detail::order(this).take_again();
  }
  void unlock() MUSTER_THREAD_ANNOTATION(release_capability()) {
    muster_lock* const handle = handle_;  // another one may be the last to use all of this
    detail::order(this).give_up();
    detail::check(muster_lock_release(handle));
  }
  bool try_lock() MUSTER_THREAD_ANNOTATION(try_acquire_capability(true)) {
    return has_taken(muster_lock_try_acquire(handle_));
  }
  /// Any duration will do: hours::max() is for ever; zero or less is over at once.
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& time)
      MUSTER_THREAD_ANNOTATION(try_acquire_capability(true)) {
    return has_taken(muster_lock_timed_acquire(handle_, detail::bounded(time).count()));
  }
  template <class Clock, class Duration>
  bool try_lock_until(const std::chrono::time_point<Clock, Duration>& time)
      MUSTER_THREAD_ANNOTATION(try_acquire_capability(true)) {
    return detail::try_until(*this, time);
  }

  /// Tells clang's thread safety analysis, which does not follow calls of sections, that the caller
  /// is in one: the first line of a section that is handed to execute(). Does nothing.
  void assert_held() const noexcept MUSTER_THREAD_ANNOTATION(assert_capability(this)) {}
  /// The same of a section that is handed to execute_shared(): what the lock guards is read there.
  void assert_shared_held() const noexcept
      MUSTER_THREAD_ANNOTATION(assert_shared_capability(this)) {}

  /// Inside a section of this lock, the innermost one: calls `outside` without the lock, and
  /// returns or throws what that does, with the lock taken again (muster_lock_unlocked).
  template <class F>
  requires(detail::can_be_moved_to_the_caller<std::invoke_result_t<F&>>) auto unlocked(F&& outside)
      -> std::invoke_result_t<F&> {
    struct call {
      std::remove_reference_t<F>* outside;
      detail::outcome<std::invoke_result_t<F&>> result;
    } mine{std::addressof(outside), {}};
    const auto run = [](void* self) {
      static_cast<call*>(self)->result.run(*static_cast<call*>(self)->outside);
    };
    const detail::order order(this);
    order.give_up();
    const int status = muster_lock_unlocked(handle_, run, &mine);
    order.take_again();
    detail::check(status);
    return mine.result.take();
  }

  /// Has a copy of the section executed some time (muster_lock_post). What it throws ends the
  /// program.
  template <class F>
  void post(F&& section) {
    struct copy {
      std::decay_t<F> section;
      [[no_unique_address]] detail::order order;
    };
    muster_lock* const handle = handle_;
    std::unique_ptr<copy> owned(new copy{std::forward<F>(section), detail::order(this)});
    owned->order.ask(owned.get());
    detail::check(muster_lock_post(
        handle,
        [](void* argument) {
          const std::unique_ptr<copy> mine(static_cast<copy*>(argument));
          mine->order.begin(mine.get());
          mine->section();
          mine->order.end(mine.get());
        },
        owned.get()));
    static_cast<void>(owned.release());
  }

  /// The same with a result to come.
  template <class F>
  requires(detail::can_be_moved_to_the_caller<std::invoke_result_t<std::decay_t<F>&>>) auto async(
      F&& section) -> future<std::invoke_result_t<std::decay_t<F>&>> {
    using R = std::invoke_result_t<std::decay_t<F>&>;
    using base = typename future<R>::state;
    struct request : base {
      request(F&& its, void* of) : section(std::forward<F>(its)), order(of) {}
      std::decay_t<F> section;
      [[no_unique_address]] detail::order order;
    };
    muster_lock* const handle = handle_;
    auto mine = std::make_unique<request>(std::forward<F>(section), this);
    mine->order.ask(mine.get());
    const unsigned posted_by = muster_process_number();  // before it forks, if it is executed here
    detail::check(muster_lock_post(
        handle,
        [](void* argument) {
          auto& self = *static_cast<request*>(argument);
          self.order.begin(&self);
          self.result.run(self.section);
          self.order.end(&self);
          self.ready.store(1, std::memory_order_release);
          self.ready.notify_all();  // needs the address only: the state may be gone
        },
        mine.get()));
    return future<R>(std::move(mine), handle, posted_by);
  }

  std::string explain() const { return detail::text_of<muster_lock_explain>(handle_); }
  /// What it is and does now, for programs.
  muster_lock_choice choice() const {
    muster_lock_choice choice{};
    detail::check(muster_lock_get_choice(handle_, &choice, sizeof choice));
    return choice;
  }
  /// What became of its sections so far: of `rcl` and `auto`, else 0, but for section_ns.
  muster_lock_counters counters() const {
    muster_lock_counters counters{};
    detail::check(muster_lock_get_counters(handle_, &counters, sizeof counters));
    return counters;
  }
  muster_lock* native_handle() noexcept { return handle_; }

 private:
  /// `Passed`: a section, or a reference to one.
  template <class Passed, class R>
  struct called {
    Passed section;
    detail::outcome<R> result;
    [[no_unique_address]] detail::order order;
  };
  /// Bytes of it that may be copied: ThreadSanitizer is told of its place.
  template <class Passed, class R>
  static constexpr std::size_t copied =
#ifdef MUSTER_TELLS_TSAN
      0;
#else
      alignof(called<Passed, R>) <= alignof(void*) && detail::outcome<R>::can_travel
          ? sizeof(called<Passed, R>)
          : 0;
#endif
  template <auto How, class R, class Passed>
  R execute_by(Passed& section, auto... bytes) {
    using call = called<Passed, R>;
    muster_lock* const handle = handle_;
    call mine{section, {}, detail::order(this)};
    mine.order.ask(&mine);
    detail::check(How(
        handle,
        [](void* argument) {
          auto& self = *static_cast<call*>(argument);
          self.order.begin(&self);
          self.result.run(self.section);
          self.order.end(&self);
        },
        &mine, bytes...));
    mine.order.answered(&mine);
    return mine.result.take();
  }
  bool has_taken(int status) {
    if (status == MUSTER_ETIMEDOUT) return false;
    detail::check(status);
    detail::order(this).take_again();
    return true;
  }

  muster_lock* handle_ = nullptr;
  muster_lock_words words_{};
};

/// Keeps its thread near the server of a lock, else near the first server, for as long as it lives:
/// muster_thread_bind(). A thread's.
class thread_place {
 public:
  explicit thread_place(lock* near = nullptr) {
    detail::check(muster_thread_bind(near == nullptr ? nullptr : near->native_handle(), &core_));
  }
  ~thread_place() { muster_thread_unbind(); }
  thread_place(const thread_place&) = delete;
  thread_place& operator=(const thread_place&) = delete;

  unsigned core() const noexcept { return core_; }

 private:
  unsigned core_ = 0;
};

/// A condition for sections of a lock: declared after the lock, made before the lock is used
/// (muster_cond_create), waited for inside of sections.
class condition {
 public:
  explicit condition(lock& of) : order_(&of) {
    detail::check(muster_cond_create(&handle_, of.native_handle()));
  }
  ~condition() { muster_cond_destroy(handle_); }
  condition(const condition&) = delete;
  condition& operator=(const condition&) = delete;

  /// May return without a notification.
  void wait() {
    order_.give_up();
    const int status = muster_cond_wait(handle_);
    order_.take_again();
    detail::check(status);
  }
  template <class Predicate>
  void wait(Predicate&& holds) {
    static_assert(std::is_invocable_r_v<bool, Predicate&>,
                  "wait() takes a predicate or nothing: not the lock, which a condition knows");
    while (!holds()) wait();
  }
  /// False if the time was over. Any duration will do: seconds::max() is for ever; zero or less is
  /// over at once, with the lock given up and taken again.
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> timeout) {
    const std::chrono::nanoseconds at_most = detail::bounded(timeout);
    order_.give_up();
    const int status = muster_cond_timedwait(handle_, at_most.count());
    order_.take_again();
    if (status == MUSTER_ETIMEDOUT) return false;
    detail::check(status);
    return true;
  }
  template <class Rep, class Period, class Predicate>
  bool wait_for(std::chrono::duration<Rep, Period> timeout, Predicate holds) {
    const auto end = std::chrono::steady_clock::now() + detail::bounded(timeout);
    while (!holds()) {
      if (!wait_for(end - std::chrono::steady_clock::now())) return holds();
    }
    return true;
  }
  void notify_one() { detail::check(muster_cond_signal(handle_)); }
  void notify_all() { detail::check(muster_cond_broadcast(handle_)); }

 private:
  muster_cond* handle_ = nullptr;
  [[no_unique_address]] detail::order order_;
};

namespace detail {

template <class... Arguments>
inline constexpr bool without_options = true;
template <class First, class... Others>
inline constexpr bool without_options<First, Others...> =
    !std::is_same_v<std::remove_cvref_t<First>, lock_options>;

}  // namespace detail

/// A value reachable only inside its lock's sections.
///
///   muster::guarded<std::string> name("of an auto lock");
///   muster::guarded<std::string> other(muster::lock_options{"rcl", &server}, "by this server");
///
/// Who has it const executes sections that get the value const, in mutual exclusion all the same.
template <class T>
class guarded {
 public:
  /// The value is made of the arguments, and the lock as the options say if they come first.
  template <class... Arguments>
  requires std::is_constructible_v<T, Arguments...> && detail::without_options<Arguments...>
  explicit guarded(Arguments&&... arguments) : value_(std::forward<Arguments>(arguments)...) {}
  template <class... Arguments>
  requires std::is_constructible_v<T, Arguments...>
  explicit guarded(const lock_options& options, Arguments&&... arguments)
      : value_(std::forward<Arguments>(arguments)...), lock_(options) {}

  /// Executes `section(value)`. What it returns must not refer into the value.
  template <class F>
  auto execute(F&& section) {
    return lock_.execute(detail::bound<F>(section, value_));
  }
  template <class F>
  auto execute(F&& section) const {
    return lock_.execute(detail::bound<F>(section, value_));
  }
  /// Executes `section(value)`, const, beside others of this kind where the lock has readers.
  template <class F>
  auto execute_shared(F&& section) const {
    return lock_.execute_shared([&] { return std::invoke(section, value_); });
  }
  template <class F>
  void post(F&& section) {
    lock_.post([this, mine = std::forward<F>(section)]() mutable { std::invoke(mine, value_); });
  }
  template <class F>
  auto async(F&& section) {
    return lock_.async(
        [this, mine = std::forward<F>(section)]() mutable { return std::invoke(mine, value_); });
  }
  T copy() const {
    return execute([](const T& value) { return value; });
  }
  muster::lock& native_lock() noexcept { return lock_; }

 private:
  T value_;
  mutable muster::lock lock_;  // last: what was posted is executed before the value ends
};

}  // namespace muster

#endif
