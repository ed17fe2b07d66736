// SPDX-License-Identifier: BSD-3-Clause
// Processes to test with, and what they leave behind.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <set>
#include <string>

#include "machine/error.hpp"

namespace muster::test {

/// Runs `body` in a forked child and returns waitpid's status: 0 if it returned true and no
/// EXPECT_ failed in it. An exception ends it with 3, after its text on stderr.
int in_child(const std::function<bool()>& body);

/// Forks a child that runs `body` until it is killed or returns.
class Child {
 public:
  explicit Child(const std::function<bool()>& body);
  ~Child() { kill_9(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  int wait();  ///< waitpid's status
  void kill_9();

 private:
  pid_t pid_;
};

/// A pipe from a child. Reading ends, too, when the child has died: make it before the child.
class Channel {
 public:
  Channel();
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  bool send(int number) const;  ///< in the child
  int receive();                ///< in the parent; -1 if the child died without a word

 private:
  int ends_[2] = {-1, -1};
};

/// Whether kill_at_every_system_call() works here: it needs ptrace.
bool can_trace_children();

/// Kills a child (kill -9) before and after its nth system call, for n = 0, 1, ... until it gets to
/// its end alive; `check` runs after each death. Returns how many died.
int kill_at_every_system_call(const std::function<bool()>& body,
                              const std::function<void()>& check);

/// Whether deny_memfd() works here.
bool can_deny_memfd();

/// memfd_create fails with ENOSYS from now on, in this process and its children (seccomp).
bool deny_memfd();

/// A process of its own mount namespace with 64 KiB of /dev/shm, and without memfd_create.
bool small_dev_shm();
bool can_have_small_dev_shm();

/// How the names that this test gives to servers begin, in its children too.
std::string name_prefix();

/// Whatever of this test outlives processes: names in /dev/shm, and servers' local sockets.
std::set<std::string> leftovers();

/// Open descriptors, and mappings of segments, of this process.
std::size_t open_descriptors();
std::size_t mapped_segments();

/// What `body` throws; fails the test if that is no Error of this code.
std::string error_text(Status code, const std::function<void()>& body);

/// A user that is not us; only root can become it.
inline constexpr uid_t other_user = 65534;
inline bool is_root() { return geteuid() == 0; }

}  // namespace muster::test
