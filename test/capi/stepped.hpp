// SPDX-License-Identifier: BSD-3-Clause
// A process that is stopped after each change it makes to some memory, and can be killed there.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <span>

namespace muster::test {

class Stepped {
 public:
  /// Whether processes can be traced here.
  static bool possible();

  /// Forks. Stops where the body calls mark(), and does not begin before run_to_mark().
  explicit Stepped(const std::function<void()>& body);
  ~Stepped();
  Stepped(const Stepped&) = delete;
  Stepped& operator=(const Stepped&) = delete;

  static void mark();

  /// At full speed to the next mark; false if it ended before. By the thread that forked it, as all
  /// that follows.
  bool run_to_mark();

  /// Instruction by instruction, until `shared` has changed `changes` times, by whomever. False if
  /// it came to its next mark, or ended, before.
  bool step(std::span<const std::byte> shared, unsigned changes);

  void kill();  ///< by SIGKILL; leaves a zombie
  pid_t pid() const { return pid_; }

 private:
  bool stopped_at_mark(int status);

  pid_t pid_;
  bool gone_ = false;
};

}  // namespace muster::test
