// SPDX-License-Identifier: BSD-3-Clause
#include "machine/identity.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "machine/keep_errno.hpp"
#include "machine/made_once.hpp"

namespace muster {

thread_local constinit Self self_if_known;

namespace {

struct Stat {
  Word number;
  char state;
  bool is_of_kernel;      ///< such a thread has nothing of ours
  unsigned long threads;  ///< of its process
  std::uint64_t start;

  bool has_ended() const noexcept { return state == 'Z' || state == 'X'; }
};

/// By syscall(2): open, read, poll and close are cancellation points, and a wait is none.
std::optional<Stat> read_stat(const char* path) noexcept {
  const auto fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  if (fd < 0) return std::nullopt;
  char text[1024];
  const long length = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  if (length <= 0) return std::nullopt;
  text[length] = '\0';
  const char* at = std::strrchr(text, ')');  // behind a name, which may have any character
  if (at == nullptr || at[1] == '\0') return std::nullopt;
  Stat stat{static_cast<Word>(std::strtoul(text, nullptr, 10)), at[2], false, 0, 0};
  constexpr int flags = 9;
  constexpr unsigned long of_kernel = 0x0020'0000;  // the kernel's PF_KTHREAD
  constexpr int threads = 20;
  constexpr int start = 22;
  for (int field = 3; field <= start; ++field) {  // the state is the third
    at = std::strchr(at + 1, ' ');
    if (at == nullptr) return std::nullopt;
    if (field == flags) stat.is_of_kernel = (std::strtoul(at, nullptr, 10) & of_kernel) != 0;
    if (field == threads) stat.threads = std::strtoul(at, nullptr, 10);
  }
  stat.start = std::strtoull(at, nullptr, 10);
  return stat;
}

/// Nothing where /proc is another namespace's. The thread's own file: the process's sums over all
/// threads, which takes longer.
std::optional<Stat> stat_of(Word number) noexcept {
  if (!own_thread().has_proc) return std::nullopt;
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%u/task/%u/stat", number, number);
  return read_stat(path);
}

/// `start`: 0 where /proc does not say.
Word identity(Word number, std::uint64_t start) noexcept {
  constexpr std::uint64_t odd = 0x9e37'79b9'7f4a'7c15;
  std::uint64_t mixed = (start * odd ^ number) * odd;
  mixed = (mixed ^ mixed >> 29) * odd;
  constexpr unsigned hashes = (1U << (32 - identity_hash_shift)) - 1;  // but for 0
  return static_cast<Word>(1 + (mixed >> 32) % hashes) << identity_hash_shift | number;
}

/// Whether it is a child of ours that has ended. It remains to be waited for.
bool is_dead_child(Word number) noexcept {
  siginfo_t ended{};
  constexpr int look = WEXITED | WNOHANG | WNOWAIT | __WALL;
  return syscall(SYS_waitid, P_PID, number, &ended, look, nullptr) == 0 && ended.si_pid != 0;
}

/// Where /proc cannot be read. It takes no descriptor, since that may be what is lacking.
/// `no_signal`: what sending signal 0 returned.
bool is_gone_unseen(Word number, long no_signal) noexcept {
  return (no_signal != 0 && errno == ESRCH) || is_dead_child(number);
}

std::uint64_t number_of_namespace(const char* path) noexcept {
  struct stat status {};
  return stat(path, &status) == 0 ? status.st_ino : 0;
}

/// Of the calling thread; 0 where /proc says nothing of it.
std::uint64_t own_start(Word number) noexcept {
  const auto own = read_stat("/proc/thread-self/stat");
  return own && own->number == number ? own->start : 0;
}

std::uint64_t namespaces(bool knows_start) noexcept {
  const std::uint64_t pids = number_of_namespace("/proc/self/ns/pid");
  const std::uint64_t both = pids ^ number_of_namespace("/proc/self/ns/time") << 32;
  return pids == 0 || knows_start ? both : ~both;
}

/// A fork's child is another one.
void forget_self() noexcept { self_if_known = {}; }

}  // namespace

void find_self() noexcept {
  static constinit MadeOnce<int> registered;
  registered.get([] { return pthread_atfork(nullptr, nullptr, forget_self); });
  const KeepErrno of_caller;
  const auto number = static_cast<Word>(syscall(SYS_gettid));
  const std::uint64_t start = own_start(number);
  self_if_known = {identity(number, start), start != 0, namespaces(start != 0)};
}

Word own_process() noexcept {
  static constinit std::atomic<Word> known;
  const auto number = static_cast<Word>(getpid());
  Word own = known.load(std::memory_order_relaxed);
  if (number_of(own) == number) return own;  // else a fork's child's parent's
  const KeepErrno of_caller;
  const auto stat = stat_of(number);
  own = identity(number, stat ? stat->start : 0);
  known.store(own, std::memory_order_relaxed);
  return own;
}

bool is_another(Word of) noexcept {
  const auto stat = stat_of(number_of(of));
  return stat && (stat->is_of_kernel || identity(number_of(of), stat->start) != of);
}

bool is_thread_gone(Word of) noexcept {
  const Word number = number_of(of);
  if (number == 0) return true;
  if (const auto stat = stat_of(number)) {
    return stat->has_ended() || stat->is_of_kernel || identity(number, stat->start) != of;
  }
  return is_gone_unseen(number, syscall(SYS_tkill, number, 0));
}

bool are_left_alone(unsigned long threads) noexcept {
  const auto first = stat_of(static_cast<Word>(getpid()));
  return first && first->has_ended() && first->threads == threads + 1;
}

bool is_process_gone(Word of) noexcept {
  const Word number = number_of(of);
  if (number == 0) return true;
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, number, 0));
  if (fd >= 0) {
    pollfd ended{fd, POLLIN, 0};
    const timespec at_once{};
    const bool gone = syscall(SYS_ppoll, &ended, 1, &at_once, nullptr, 0) == 1;
    syscall(SYS_close, fd);
    return gone;
  }
  if (errno == ESRCH || errno == EINVAL || errno == ENOENT) return true;  // or no process's at all
  // There is no such call, or no descriptor.
  if (const auto stat = stat_of(number)) return stat->has_ended() && stat->threads <= 1;
  return is_gone_unseen(number, syscall(SYS_kill, number, 0));
}

}  // namespace muster
