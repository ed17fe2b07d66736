// SPDX-License-Identifier: BSD-3-Clause
// What a participant looks after when a wait takes long: whether another one died, and whether
// somebody should be told who is missing. All of it in the slow path; the fast path pays nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "machine/hardware.hpp"

namespace muster {

class Engine;
struct UserHooks;

/// Instead of a pid: of a process in another PID namespace than the barrier's creator. Nobody can
/// tell whether it lives.
inline constexpr Word unseen_pid = ~Word{1};

/// Tells PID namespaces apart; 0 if /proc does not say.
std::uint64_t own_pid_namespace() noexcept;

/// Whether a process is gone or a zombie (kill(pid, 0) calls zombies alive).
bool has_died(Word pid) noexcept;

class Watch {
 public:
  /// `engine` and `hooks` must outlive it. MUSTER_WATCHDOG=seconds is read once a process; what
  /// is no number is told on stderr.
  Watch(const Engine& engine, unsigned rank, const UserHooks& hooks);

  /// For the rank's port.
  Hooks hooks() noexcept;

 private:
  Word inspect(std::int64_t waited_ns) noexcept;
  Word find_dead() noexcept;
  void report_missing(std::int64_t waited_ns) const noexcept;

  const Engine& engine_;
  const UserHooks& hooks_;
  unsigned rank_;
  std::int64_t limit_ns_;         // what takes longer is reported
  std::int64_t swept_ns_ = 0;     // when all others were last looked at
  std::int64_t reported_ns_ = 0;  // how long the wait had taken at the last report
};

}  // namespace muster
