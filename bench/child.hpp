// SPDX-License-Identifier: BSD-3-Clause
// Child processes that leave nothing behind, however their parent ends.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace muster::bench {

/// In a child: it gets `signal` when its parent ends. False if that was before.
inline bool follow_parent(pid_t parent, int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
  return getppid() == parent;
}

inline void die_with(pid_t parent) {
  if (!follow_parent(parent, SIGKILL)) _exit(1);
}

/// Kills and reaps a group of processes. Its leader's number stays taken until it is reaped, so
/// that the group is surely that one; what it leaves behind is a subreaper's to reap.
inline void end_group(pid_t leader) {
  kill(-leader, SIGKILL);
  while (waitpid(-leader, nullptr, 0) > 0 || errno == EINTR) {
  }
}

}  // namespace muster::bench
