// SPDX-License-Identifier: BSD-3-Clause
// Child processes that leave nothing behind, however their parent ends.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

namespace muster::bench {

/// In a child: it gets `signal` when its parent ends. False if that was before.
inline bool follow_parent(pid_t parent, int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
  return getppid() == parent;
}

inline void die_with(pid_t parent) {
  if (!follow_parent(parent, SIGKILL)) _exit(1);
}

/// In a child: becomes that program, which has nothing to read. Returns if there is none.
inline void become(const std::vector<std::string>& words, int out, int err) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execvp(argv[0], argv.data());
}

/// Kills and reaps a group of processes. Its leader's number stays taken until it is reaped, so
/// that the group is surely that one; what it leaves behind is a subreaper's to reap.
inline void end_group(pid_t leader) {
  kill(-leader, SIGKILL);
  while (waitpid(-leader, nullptr, 0) > 0 || errno == EINTR) {
  }
}

}  // namespace muster::bench
