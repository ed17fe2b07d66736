// SPDX-License-Identifier: BSD-3-Clause
// Small owners for what the system hands out.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>

namespace muster {

/// A file descriptor, closed at the end.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset(int fd = -1) noexcept {
    const int before = std::exchange(fd_, fd);  // first: a fork's child closes what it finds here
    if (before >= 0) close(before);
  }

 private:
  int fd_ = -1;
};

/// A close-on-exec duplicate, never 0, 1 or 2: where standard streams are closed, a stray printf
/// must not end up in shared memory. Empty, with errno set, if it cannot be had.
inline UniqueFd duplicate(int fd) noexcept { return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 3)); }

/// Blocks every signal in this thread while it lives, and so in threads made meanwhile.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

inline std::string errno_text(int number) { return std::generic_category().message(number); }

}  // namespace muster
