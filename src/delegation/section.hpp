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
struct CancelledInHandler {
  bool has_returned = false;  ///< the section

  ~CancelledInHandler() {
    if (!has_returned && std::uncaught_exceptions() == 0) leave_handlers();
  }
  static void leave_handlers();
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
  [[gnu::always_inline]] void run_own(auto leave) const {
    try {
      CancelledInHandler guard;
      function(argument);
      guard.has_returned = true;
    } catch (...) {
      end_cancelled(leave);
      throw;
    }
    leave();
  }

 private:
  /// Apart: the registers that it takes would be saved by every section.
  [[gnu::cold, gnu::noinline]] static void end_cancelled(auto leave) {
    if (std::current_exception() != nullptr) std::terminate();
    leave();  // no exception: the thread is cancelled
  }
};

/// A callable as a section; it has to live as long.
template <class Fn>
Section section_of(Fn& fn) {
  return {[](void* self) { (*static_cast<Fn*>(self))(); }, &fn};
}

}  // namespace muster::delegation
