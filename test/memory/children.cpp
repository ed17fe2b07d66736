// SPDX-License-Identifier: BSD-3-Clause
#include "children.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>

namespace muster::test {
namespace {

namespace fs = std::filesystem;

const pid_t test_process = getpid();

[[noreturn]] void run(const std::function<bool()>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = 3;
  try {
    code = body() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "in a child: %s\n", error.what());
  }
  if (code == 0 && testing::Test::HasFailure()) code = 2;  // an EXPECT_ in the child
  std::fflush(nullptr);
  _exit(code);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// Steps a stopped child through `stops` stops at system calls. False if it ended before.
bool step(pid_t pid, int stops) {
  ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
  for (int i = 0; i < stops; ++i) {
    ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
    if (!WIFSTOPPED(wait_for(pid))) return false;
  }
  return true;
}

}  // namespace

Child::Child(const std::function<bool()>& body) : pid_(fork()) {
  if (pid_ == 0) run(body);
}

int Child::wait() {
  const int status = wait_for(pid_);
  pid_ = -1;
  return status;
}

void Child::kill_9() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  wait();
}

int in_child(const std::function<bool()>& body) { return Child(body).wait(); }

Channel::Channel() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }

Channel::~Channel() {
  for (const int end : ends_) close(end);
}

bool Channel::send(int number) const {
  return write(ends_[1], &number, sizeof number) == sizeof number;
}

int Channel::receive() {
  close(ends_[1]);
  ends_[1] = -1;
  int number = -1;
  return read(ends_[0], &number, sizeof number) == sizeof number ? number : -1;
}

bool can_trace_children() {
  return in_child([] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0; }) == 0;
}

int kill_at_every_system_call(const std::function<bool()>& body,
                              const std::function<void()>& check) {
  for (int stops = 0;; ++stops) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(4);
      raise(SIGSTOP);
      run(body);
    }
    if (!WIFSTOPPED(wait_for(pid))) {
      ADD_FAILURE() << "the child cannot be traced";
      return 0;
    }
    if (!step(pid, stops)) return stops;
    kill(pid, SIGKILL);
    wait_for(pid);
    check();
  }
}

bool can_deny_memfd() {
  return in_child([] { return deny_memfd(); }) == 0;
}

bool deny_memfd() {
  std::array<sock_filter, 4> program{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog filter{program.size(), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 &&
         syscall(SYS_memfd_create, "denied", 0) < 0;
}

bool small_dev_shm() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k") == 0 && deny_memfd();
}

bool can_have_small_dev_shm() {
  return is_root() && in_child([] { return small_dev_shm(); }) == 0;
}

std::string name_prefix() { return "test." + std::to_string(test_process) + "-"; }

std::set<std::string> leftovers() {
  std::set<std::string> found;  // of this test's: others run at the same time
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.find("muster") != std::string::npos) found.insert(name);
  }
  static const std::string ours = "-" + name_prefix();
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const std::size_t name = line.find("@muster-");
    if (name != std::string::npos && line.find(ours) != std::string::npos) {
      found.insert(line.substr(name));
    }
  }
  return found;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

std::size_t mapped_segments() {
  std::size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:muster") != std::string::npos ||
        line.find("/dev/shm/") != std::string::npos) {
      ++count;
    }
  }
  return count;
}

std::string error_text(Status code, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace muster::test
