// SPDX-License-Identifier: BSD-3-Clause
// Who a word names.
#include "machine/identity.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>

namespace muster {
namespace {

TEST(Identity, IsOfAThreadUntilItEnds) {
  Word identity = 0;
  std::thread([&] {
    identity = own_thread().identity;
    EXPECT_FALSE(is_thread_gone(identity));
    EXPECT_TRUE(is_thread_gone(identity ^ Word{1} << identity_hash_shift)) << "another start";
  }).join();
  // Under an emulator it may be seen for a moment after it was joined.
  for (int looks = 0; !is_thread_gone(identity) && looks < 1000; ++looks) std::this_thread::yield();
  EXPECT_TRUE(is_thread_gone(identity));
}

// Some have numbers of few bits, and hashes likewise, and live for ever.
TEST(Identity, NamesNoThreadOfTheKernel) {
  constexpr Word its_threads_parent = 2;
  std::string name;
  std::ifstream("/proc/2/comm") >> name;
  if (name != "kthreadd") GTEST_SKIP() << "none is seen here";
  for (Word hash = 1; hash < Word{1} << (32 - identity_hash_shift); ++hash) {
    const Word identity = hash << identity_hash_shift | its_threads_parent;
    EXPECT_TRUE(is_thread_gone(identity)) << hash;
    EXPECT_TRUE(is_another(identity)) << hash;
  }
}

/// A process that is there until it is killed, and a zombie then.
class Other {
 public:
  explicit Other(void (*body)()) : pid_(fork()) {
    if (pid_ != 0) return;
    body();
    for (;;) pause();
  }
  ~Other() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

  Word number() const { return static_cast<Word>(pid_); }
  void kill_it() const {
    kill(pid_, SIGKILL);
    siginfo_t ended{};
    waitid(P_PID, number(), &ended, WEXITED | WNOWAIT);
  }
  void wait_for_zombie() const {
    for (std::string state; state != "Z"; usleep(1000)) {
      std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
      stat >> state >> state >> state;
    }
  }

 private:
  pid_t pid_;
};

void expect_processes_are_known() {
  const Other other([] {});
  EXPECT_FALSE(is_process_gone(other.number()));
  EXPECT_FALSE(is_process_gone(own_process()));
  other.kill_it();
  EXPECT_TRUE(is_process_gone(other.number())) << "a zombie";
  const auto reaped = [] { return Other([] {}).number(); };
  EXPECT_TRUE(is_process_gone(reaped()));
  const Other without_its_first_thread([] {
    std::thread([] {
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);
  });
  without_its_first_thread.wait_for_zombie();
  EXPECT_FALSE(is_process_gone(without_its_first_thread.number()));
  without_its_first_thread.kill_it();
  EXPECT_TRUE(is_process_gone(without_its_first_thread.number()));
}

/// Of the calling thread, from now on.
bool deny(unsigned call, unsigned error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

TEST(Process, IsKnownToLive) { expect_processes_are_known(); }

// Linux before 5.3 has no pidfd_open, and who shuts programs in may deny it.
TEST(Process, IsKnownToLiveWithoutPidfd) {
  bool denied = true;
  for (const unsigned error : {ENOSYS, EPERM}) {
    std::thread([&] {
      denied = denied && deny(SYS_pidfd_open, error);
      expect_processes_are_known();
    }).join();
  }
  if (!denied) GTEST_SKIP() << "seccomp filters are not allowed here";
}

// The processes are made before: it is their parent that has none.
TEST(Process, IsKnownToLiveByAParentWithoutDescriptors) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const Other living([] {});
  const Other dead([] {});
  dead.kill_it();
  static_cast<void>(own_thread());
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_FALSE(is_process_gone(living.number()));
  EXPECT_TRUE(is_process_gone(dead.number()));
  EXPECT_TRUE(is_thread_gone(dead.number()));
  living.kill_it();
  EXPECT_TRUE(is_process_gone(living.number()));
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace muster
