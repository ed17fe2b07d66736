// SPDX-License-Identifier: BSD-3-Clause
// What locks execute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

namespace muster::delegation {

/// Around a section of the calling thread, which may be in a handler. If it is cancelled in the
/// section it leaves its handlers first, as it will do anyway: in one `catch (...)` ends the
/// program, since a cancellation is no exception of C++. Free where it is not.
class CancelledInHandler {
 public:
  CancelledInHandler() = default;
  ~CancelledInHandler() {
    if (!returned_ && std::uncaught_exceptions() == 0) leave_handlers();
  }
  CancelledInHandler(const CancelledInHandler&) = delete;
  CancelledInHandler& operator=(const CancelledInHandler&) = delete;
  void section_returned() noexcept { returned_ = true; }

 private:
  static void leave_handlers();
  bool returned_ = false;
};

/// What is copied of a section's argument goes by these, and is at most so much.
using CopiedWord [[gnu::may_alias]] = std::uint64_t;
inline constexpr std::size_t copied_bytes_max = 40;

/// A critical section: a function and what it is called with. What it throws ends the program: it
/// may be on another thread's stack than its caller's, and its lock would stay taken.
struct Section {
  void (*function)(void* argument);
  void* argument;

  void operator()() const noexcept { function(argument); }
  /// On its caller's own thread and stack; then `leave()`, also where the thread is cancelled in
  /// the section, which unwinds it. Free where it is not: disabling cancellation would cost half as
  /// much as a quick call.
  template <class Leave>
  [[gnu::always_inline]] void run_own(Leave leave) const {
    try {
      CancelledInHandler guard;
      function(argument);
      guard.section_returned();
    } catch (...) {
      end_cancelled(leave);
      throw;
    }
    leave();
  }

 private:
  /// Apart: the registers that it takes would be saved by every section.
  template <class Leave>
  [[gnu::cold, gnu::noinline]] static void end_cancelled(Leave leave) {
    if (std::current_exception() != nullptr) std::terminate();
    leave();  // no exception: the thread is cancelled
  }
};

}  // namespace muster::delegation
