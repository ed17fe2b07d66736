// SPDX-License-Identifier: BSD-3-Clause
// What set-up code throws. The hot path never does; the C edge turns it into a code and a text.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace muster {

/// Why something failed. The values are the C ABI's (`muster.h`, MUSTER_E*): append, never
/// renumber.
enum class Status : int {
  ok = 0,
  invalid = 1,       ///< an argument is out of range, malformed or contradicts another
  unknown_name = 2,  ///< no algorithm, level, mapping or policy has this name
  unsupported = 3,   ///< valid, but this algorithm, machine or kernel cannot do it
  declined = 4,      ///< the algorithm declines this placement (unbound ranks); another one serves
  no_memory = 5,     ///< memory, /dev/shm or the segment is exhausted
  system = 6,        ///< a system call failed; the text names it and its errno
  foreign = 7,  ///< not one of our segments: magic, version, owner, mode, seal or layout differ
  timeout = 8,  ///< the deadline passed; the barrier is broken for all
  broken = 9,   ///< another participant timed out or broke the barrier before
  peer = 10,    ///< a participant died
  busy = 11,    ///< the rank or object is in use by another
};

class Error : public std::runtime_error {
 public:
  Error(Status code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Status code() const noexcept { return code_; }

 private:
  Status code_;
};

}  // namespace muster
