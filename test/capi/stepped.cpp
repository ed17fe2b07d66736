// SPDX-License-Identifier: BSD-3-Clause
#include "stepped.hpp"

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

namespace muster::test {
namespace {

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, __WALL) < 0) {
    if (errno != EINTR) return 0;
  }
  return status;
}

}  // namespace

bool Stepped::possible() {
  const pid_t pid = fork();
  if (pid == 0) _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
  return wait_for(pid) == 0;
}

Stepped::Stepped(const std::function<void()>& body) {
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(99);
    mark();
    body();
    _exit(0);
  }
  const bool began = WIFSTOPPED(wait_for(pid_));
  if (began) ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL);
}

Stepped::~Stepped() {
  kill();
  wait_for(pid_);
}

void Stepped::mark() { raise(SIGSTOP); }

void Stepped::kill() {
  if (!gone_) ::kill(pid_, SIGKILL);
  gone_ = true;
}

bool Stepped::stopped_at_mark(int status) {
  return WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
}

bool Stepped::run_to_mark() {
  for (;;) {
    ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
    const int status = wait_for(pid_);
    if (stopped_at_mark(status)) return true;
    if (!WIFSTOPPED(status)) return false;
  }
}

bool Stepped::step(std::span<const std::byte> shared, unsigned changes) {
  std::vector<std::byte> before(shared.begin(), shared.end());
  while (changes > 0) {
    ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr);
    const int status = wait_for(pid_);
    if (!WIFSTOPPED(status) || stopped_at_mark(status)) return false;
    if (std::memcmp(before.data(), shared.data(), before.size()) == 0) continue;
    before.assign(shared.begin(), shared.end());
    --changes;
  }
  return true;
}

}  // namespace muster::test
