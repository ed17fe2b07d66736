// SPDX-License-Identifier: BSD-3-Clause
// The C edge: exceptions become codes, their texts the calling thread's last error.
#pragma once

#include <cerrno>
#include <new>
#include <string_view>
#include <type_traits>

#include "machine/error.hpp"
#include "machine/no_cancellation.hpp"

namespace muster {

/// Keeps the text for muster_last_error() and returns the code. Allocates nothing: who has failed
/// for want of memory says so.
int fail(Status code, std::string_view text) noexcept;
int fail(Status code) noexcept;  ///< as muster_strerror() has it

/// Calls `fn`, which returns a Status or nothing, and may throw.
int caught(auto&& fn) {
  try {
    if constexpr (std::is_void_v<decltype(fn())>) {
      fn();
      return static_cast<int>(Status::ok);
    } else {
      const Status status = fn();
      return status == Status::ok ? static_cast<int>(status) : fail(status);
    }
  } catch (const Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(Status::no_memory, "out of memory");
  } catch (const std::exception& error) {
    return fail(Status::system, error.what());
  }
}

/// The same, wholly: the calling thread is not cancelled in there.
int guarded(auto&& fn) noexcept {
  const NoCancellation whole;
  return caught(fn);
}

}  // namespace muster
