// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cerrno>

namespace muster {

/// errno is as it was when this ends: its caller's, or what a section has left there.
class KeepErrno {
 public:
  /// `where` it is, for who knows: asking costs a call.
  explicit KeepErrno(int& where = errno) noexcept : where_(where), value_(where) {}
  ~KeepErrno() {
    if (where_ != value_) where_ = value_;
  }
  KeepErrno(const KeepErrno&) = delete;

 private:
  int& where_;
  const int value_;
};

}  // namespace muster
