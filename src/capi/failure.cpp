// SPDX-License-Identifier: BSD-3-Clause
#include "capi/failure.hpp"

#include <algorithm>
#include <cstring>

#include "muster/muster.h"

namespace muster {
namespace {

// No std::string: it would be destroyed before the last calls of other thread-local destructors.
// Short: static thread-local storage is scarce where a library comes by dlopen().
thread_local char last_error[512];

}  // namespace

int fail(Status code, std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), sizeof last_error - 1);
  std::memcpy(last_error, text.data(), length);
  last_error[length] = '\0';
  return static_cast<int>(code);
}

int fail(Status code) noexcept { return fail(code, muster_strerror(static_cast<int>(code))); }

}  // namespace muster

const char* muster_last_error(void) { return muster::last_error; }

const char* muster_version(void) { return MUSTER_VERSION; }

const char* muster_strerror(int status) {
  switch (status) {
    case MUSTER_OK:
      return "success";
    case MUSTER_EINVAL:
      return "invalid argument";
    case MUSTER_EUNKNOWN:
      return "unknown name";
    case MUSTER_ENOTSUP:
      return "not supported";
    case MUSTER_EDECLINED:
      return "the algorithm declines this placement";
    case MUSTER_ENOMEM:
      return "out of memory";
    case MUSTER_ESYSTEM:
      return "a system call failed";
    case MUSTER_EFOREIGN:
      return "not a segment or barrier of this library";
    case MUSTER_ETIMEDOUT:
      return "timed out";
    case MUSTER_EBROKEN:
      return "the barrier is broken";
    case MUSTER_EPEER:
      return "a participant died";
    case MUSTER_EBUSY:
      return "in use";
    default:
      return "unknown status";
  }
}
