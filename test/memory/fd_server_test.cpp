// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "children.hpp"
#include "memory/posix.hpp"
#include "memory/segment.hpp"

namespace muster {
namespace {

using test::error_text;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::uint64_t layout = 0x1234;

constexpr std::int64_t ms(std::int64_t count) { return count * 1'000'000; }

/// Unlike any other test's, of this run or another.
std::string fresh_name() {
  static int count = 0;
  return fmt::format("{}{}.{}", test::name_prefix(), getpid(), ++count);
}

std::unique_ptr<Segment> attach_by_name(const std::string& name, std::int64_t timeout_ns) {
  const UniqueFd fd(receive_fd(name, timeout_ns));
  return Segment::attach(fd.get(), layout);
}

/// The address that `name` has, for those who do not go through receive_fd.
struct RawAddress {
  sockaddr_un bytes{};
  socklen_t size = 0;

  explicit RawAddress(const std::string& name, uid_t user = geteuid()) {
    const std::string path = fmt::format("muster-{}-{}", user, name);
    bytes.sun_family = AF_UNIX;
    std::memcpy(bytes.sun_path + 1, path.data(), path.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

UniqueFd raw_client(const std::string& name, uid_t user = geteuid()) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const RawAddress address(name, user);
  if (connect(fd.get(), address.get(), address.size) != 0) fd.reset();
  return fd;
}

UniqueFd raw_client_when_there(const std::string& name) {
  UniqueFd fd;
  for (int tries = 0; tries < 5000 && !fd; ++tries) {
    fd = raw_client(name);
    if (!fd) std::this_thread::sleep_for(1ms);
  }
  return fd;
}

UniqueFd raw_server(const std::string& name, uid_t user = geteuid()) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const RawAddress address(name, user);
  if (bind(fd.get(), address.get(), address.size) != 0 || listen(fd.get(), 8) != 0) fd.reset();
  return fd;
}

TEST(FdServer, GivesTheDescriptorToThreadsAndProcesses) {
  const std::string name = fresh_name();
  const auto mine = Segment::create(1, layout);
  mine->data()[0] = std::byte{3};
  const FdServer server(name, mine->fd());
  for (int i = 0; i < 3; ++i) {
    const auto theirs = attach_by_name(name, ms(5000));
    EXPECT_EQ(theirs->data()[0], std::byte{3});
  }
  EXPECT_EQ(test::in_child([&] {
              attach_by_name(name, ms(5000))->data()[0] = std::byte{4};
              return true;
            }),
            0);
  EXPECT_EQ(mine->data()[0], std::byte{4});
}

TEST(FdServer, ServesManyAtOnce) {
  const std::string name = fresh_name();
  const auto segment = Segment::create(1, layout);
  const FdServer server(name, segment->fd());
  std::atomic<int> served{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 32; ++i) {
    clients.emplace_back([&] {
      if (attach_by_name(name, ms(10'000))->size() == segment->size()) ++served;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(served, 32);
}

TEST(FdServer, OutlivesTheSegmentObject) {
  const std::string name = fresh_name();
  auto segment = Segment::create(1, layout);
  const FdServer server(name, segment->fd());
  segment.reset();
  EXPECT_EQ(attach_by_name(name, ms(5000))->size(), page_size());
}

TEST(FdServer, WhatIsReceivedDoesNotSurviveExecAndNothingLeaks) {
  const std::string name = fresh_name();
  const auto before = test::leftovers();
  const auto segment = Segment::create(1, layout);
  const std::size_t open = test::open_descriptors();
  for (int i = 0; i < 20; ++i) {
    const FdServer server(name, segment->fd());
    const UniqueFd fd(receive_fd(name, ms(5000)));
    EXPECT_NE(fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_THROW(receive_fd(name, ms(5)), Error);
  EXPECT_EQ(test::open_descriptors(), open);
  EXPECT_EQ(test::leftovers(), before);
}

TEST(FdServer, NamesAndDescriptorsAreChecked) {
  const auto segment = Segment::create(1, layout);
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("a/b"), std::string("\xc3\xa9"),
        std::string("a\0b", 3), std::string(65, 'x')}) {
    error_text(Status::invalid, [&] { FdServer server(name, segment->fd()); });
    error_text(Status::invalid, [&] { receive_fd(name, 0); });
  }
  error_text(Status::invalid, [] { FdServer server(fresh_name(), -1); });
  error_text(Status::invalid, [] { receive_fd(fresh_name(), -1); });
  const std::string longest = fmt::format("{:A<64}", fresh_name());
  const FdServer server(longest, segment->fd());
  attach_by_name(longest, ms(5000));
}

TEST(FdServer, AStoppedServerIsATimeout) {
  const std::string name = fresh_name();
  const UniqueFd silent = raw_server(name);  // accepts nobody, as a stopped process does
  EXPECT_THAT(error_text(Status::timeout, [&] { receive_fd(name, ms(30)); }),
              HasSubstr("did not answer"));
}

TEST(FdServer, ClientsMayDieAnyTime) {
  const std::string name = fresh_name();
  const auto segment = Segment::create(1, layout);
  std::vector<UniqueFd> silent;  // connected, and never read
  for (int i = 0; i < 4; ++i) {
    test::Child killed([&] {  // forked first: the threads of the server come later
      while (true) {
        try {
          close(receive_fd(name, ms(1000)));
        } catch (const Error&) {
        }
      }
      return true;
    });
    const FdServer server(name, segment->fd());
    for (int k = 0; k < 100; ++k) raw_client(name);
    for (int k = 0; k < 5; ++k) silent.push_back(raw_client(name));
    std::this_thread::sleep_for(5ms);
    killed.kill_9();
    EXPECT_EQ(attach_by_name(name, ms(5000))->size(), segment->size());
  }
}

std::function<void()> before_others;
/// Before all other fork handlers, and so between ours: as a library's that was there first.
[[gnu::used, gnu::section(".preinit_array")]] void (*const first_of_all)() = [] {
  pthread_atfork(
      [] {
        if (before_others) before_others();
      },
      nullptr, nullptr);
};

TEST(FdServer, OthersForkHandlersMayWaitForWhoOffers) {
  const auto segment = Segment::create(1, layout);
  const std::string name = fresh_name();
  auto gone = std::make_unique<FdServer>(fresh_name(), segment->fd());
  std::unique_ptr<FdServer> server;
  before_others = [&] {
    std::thread([&] {
      gone.reset();
      server = std::make_unique<FdServer>(name, segment->fd());
    }).join();
  };
  test::Child child([&] { return attach_by_name(name, ms(5000))->size() == segment->size(); });
  before_others = nullptr;
  EXPECT_EQ(child.wait(), 0);
}

TEST(FdServer, EndsPromptlyWithClientsInTheQueue) {
  const auto until = std::chrono::steady_clock::now() + 5min;  // once, however busy the machine is
  std::chrono::nanoseconds took{};
  do {
    const std::string name = fresh_name();
    const auto segment = Segment::create(1, layout);
    auto server = std::make_unique<FdServer>(name, segment->fd());
    std::vector<UniqueFd> clients;
    for (int i = 0; i < 50; ++i) clients.push_back(raw_client(name));
    const auto start = std::chrono::steady_clock::now();
    server.reset();
    took = std::chrono::steady_clock::now() - start;
  } while (took >= 1s && std::chrono::steady_clock::now() < until);
  EXPECT_LT(took, 1s);
}

TEST(FdServer, ItsThreadTakesNoSignals) {
  EXPECT_EQ(test::in_child([] {
              const auto segment = Segment::create(1, layout);
              const std::string name = fresh_name();
              const FdServer server(name, segment->fd());
              attach_by_name(name, ms(5000));
              const SignalsBlocked here;
              for (const int number : {SIGUSR1, SIGTERM, SIGPIPE, SIGALRM}) {
                kill(getpid(), number);
              }
              attach_by_name(name, ms(5000));
              sigset_t pending;
              sigpending(&pending);
              for (const int number : {SIGUSR1, SIGTERM, SIGPIPE, SIGALRM}) {
                if (sigismember(&pending, number) != 1) return false;
                const timespec now{};
                sigset_t one;
                sigemptyset(&one);
                sigaddset(&one, number);
                sigtimedwait(&one, nullptr, &now);
              }
              return true;
            }),
            0);
}

/// A process whose first thread ends, and then another one.
void expect_end_with_last_thread() {
  const std::string name = fresh_name();
  test::Child child([&] {
    const auto segment = Segment::create(1, layout);
    std::atexit([] { _exit(0); });  // LeakSanitizer misses the first thread's stack
    static const FdServer first(name, segment->fd());
    static const FdServer second(name + ".2", segment->fd());
    std::thread([name] {
      std::this_thread::sleep_for(1500ms);
      if (attach_by_name(name, ms(5000))->size() != page_size()) _exit(4);  // it serves still
    }).detach();
    pthread_exit(nullptr);
    return false;
  });
  siginfo_t ended{};
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (ended.si_pid == 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(10ms);
    waitid(P_PID, static_cast<id_t>(child.pid()), &ended, WEXITED | WNOHANG | WNOWAIT);
  }
  ASSERT_NE(ended.si_pid, 0) << "its servers are still there";
  EXPECT_EQ(child.wait(), 0);
}

TEST(FdServer, EndsWithTheLastThreadOfTheProgram) {
#if defined(__SANITIZE_THREAD__) || defined(MUSTER_TEST_EMULATED)
  GTEST_SKIP() << "ThreadSanitizer and qemu-user have a thread of their own";
#endif
  std::thread(expect_end_with_last_thread).join();  // no test's frames, which catch pthread_exit()
}

TEST(FdServer, AForkedChildNeitherServesNorKeepsTheName) {
  const std::string name = fresh_name();
  const auto segment = Segment::create(1, layout);
  auto server = std::make_unique<FdServer>(name, segment->fd());
  test::Child idle([] {
    pause();
    return true;
  });
  EXPECT_EQ(test::in_child([&] {
              server.reset();  // the child's copy: the parent's serves on
              return true;
            }),
            0);
  attach_by_name(name, ms(5000));
  server.reset();
  EXPECT_THROW(receive_fd(name, ms(5)), Error);
  server = std::make_unique<FdServer>(name, segment->fd());
  attach_by_name(name, ms(5000));
}

TEST(FdServer, AChildWithoutForkHandlersKeepsTheNameButLeavesNobodyWaiting) {
  const std::string name = fresh_name();
  const auto segment = Segment::create(1, layout);
  auto server = std::make_unique<FdServer>(name, segment->fd());
  attach_by_name(name, ms(5000));
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {
    while (true) pause();
  }
  ASSERT_GT(child, 0);
  server.reset();
  EXPECT_THAT(error_text(Status::timeout, [&] { receive_fd(name, ms(20)); }),
              HasSubstr("nobody offered it"));
  error_text(Status::busy, [&] { FdServer second(name, segment->fd()); });
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  FdServer(name, segment->fd());
}

std::chrono::microseconds cpu_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST(FdServer, AReceiverWithoutDescriptorsIsToldSo) {
  const std::string name = fresh_name();
  const auto segment = Segment::create(1, layout);
  const FdServer server(name, segment->fd());
  EXPECT_EQ(test::in_child([&] {
              const int next = dup(0);
              close(next);
              rlimit one{};  // its socket's
              getrlimit(RLIMIT_NOFILE, &one);
              one.rlim_cur = static_cast<rlim_t>(next) + 1;
              setrlimit(RLIMIT_NOFILE, &one);
              const std::string said =
                  error_text(Status::system, [&] { receive_fd(name, ms(5000)); });
              return said.find("ulimit -n") != std::string::npos;
            }),
            0);
}

TEST(FdServer, WithoutDescriptorsItWaitsInsteadOfSpinning) {
  const std::string name = fresh_name();
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  test::Child poor([&] {
    const auto segment = Segment::create(1, layout);
    const FdServer server(name, segment->fd());
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const int next = dup(0);
    close(next);
    const rlimit none{static_cast<rlim_t>(next), limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    char byte = 0;
    if (read(channel[0], &byte, 1) != 1) return false;
    const auto start = cpu_time();
    std::this_thread::sleep_for(300ms);  // with a client in the queue
    const auto used = cpu_time() - start;
    setrlimit(RLIMIT_NOFILE, &limit);
    return read(channel[0], &byte, 1) == 1 && used < 100ms;
  });
  const UniqueFd waiting = raw_client_when_there(name);
  ASSERT_TRUE(waiting);
  EXPECT_EQ(write(channel[1], "g", 1), 1);
  const UniqueFd fd(receive_fd(name, ms(20'000)));  // once it has descriptors again
  EXPECT_EQ(Segment::attach(fd.get(), layout)->size(), page_size());
  EXPECT_EQ(write(channel[1], "g", 1), 1);
  EXPECT_EQ(poor.wait(), 0);
  for (const int end : channel) close(end);
}

TEST(FdServer, AnotherUserGetsNothing) {
  if (!test::is_root()) GTEST_SKIP() << "only root can become another user";
  const std::string name = fresh_name();
  const auto segment = Segment::create(1, layout);
  const FdServer server(name, segment->fd());
  EXPECT_EQ(test::in_child([&] {
              if (setuid(test::other_user) != 0) return false;
              const UniqueFd client = raw_client(name, 0);
              char byte = 0;
              return client && recv(client.get(), &byte, 1, 0) == 0;  // the end, and no message
            }),
            0);
}

TEST(FdServer, AnotherUsersServerIsNotTrusted) {
  if (!test::is_root()) GTEST_SKIP() << "only root can become another user";
  const std::string name = fresh_name();
  test::Channel channel;
  test::Child squatter([&] {
    if (setuid(test::other_user) != 0) return false;
    const UniqueFd fd = raw_server(name, 0);
    if (!fd || !channel.send(1)) return false;
    pause();
    return true;
  });
  ASSERT_EQ(channel.receive(), 1);
  EXPECT_THAT(error_text(Status::foreign, [&] { receive_fd(name, ms(5000)); }),
              HasSubstr("another user"));
  const auto segment = Segment::create(1, layout);
  error_text(Status::busy, [&] { FdServer server(name, segment->fd()); });
}

/// Answers one client with `text` and the given descriptors.
void answer(int listener, const std::string& text, const std::vector<int>& fds) {
  const UniqueFd client(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, 256> ancillary{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = ancillary.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(control), fds.data(), fds.size() * sizeof(int));
  }
  EXPECT_EQ(sendmsg(client.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

/// What an FdServer says beside the descriptor.
std::string greeting() {
  const std::string name = fresh_name();
  const auto segment = Segment::create(1, layout);
  const FdServer server(name, segment->fd());
  const UniqueFd client = raw_client(name);
  std::string text(100, '\0');
  const ssize_t got = recv(client.get(), text.data(), text.size(), 0);
  EXPECT_GT(got, 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

TEST(FdServer, WhatAnswersOtherwiseIsForeign) {
  const std::string good = greeting();
  ASSERT_EQ(good.size(), 16U);
  std::string other_version = good;
  other_version[8] ^= 2;
  const auto segment = Segment::create(1, layout);
  const int fd = segment->fd();
  struct Case {
    const char* what;
    std::string text;
    std::vector<int> fds;
  };
  const std::vector<Case> cases{{"no descriptor", good, {}},
                                {"two descriptors", good, {fd, fd}},
                                {"nine descriptors", good, std::vector<int>(9, fd)},
                                {"garbage", "garbage", {fd}},
                                {"another version", other_version, {fd}},
                                {"too short", good.substr(0, 15), {fd}},
                                {"too long", good + "x", {fd}}};
  const std::size_t open = test::open_descriptors();
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const std::string name = fresh_name();
    const UniqueFd listener = raw_server(name);
    std::thread impostor([&] { answer(listener.get(), c.text, c.fds); });
    EXPECT_THAT(error_text(Status::foreign, [&] { receive_fd(name, ms(5000)); }),
                HasSubstr("not a Muster segment's server"));
    impostor.join();
  }
  EXPECT_EQ(test::open_descriptors(), open) << "received descriptors leaked";

  const std::string name = fresh_name();  // and this is how it is accepted
  const UniqueFd listener = raw_server(name);
  std::thread honest([&] { answer(listener.get(), good, {fd}); });
  EXPECT_EQ(attach_by_name(name, ms(5000))->size(), segment->size());
  honest.join();
}

TEST(FdServer, AServerThatEndsBeforeItAnswersIsTriedAgain) {
  const std::string name = fresh_name();
  const auto segment = Segment::create(1, layout);
  UniqueFd listener = raw_server(name);
  std::unique_ptr<FdServer> server;
  std::thread restart([&] {
    UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
    listener.reset();
    server = std::make_unique<FdServer>(name, segment->fd());
  });
  EXPECT_EQ(attach_by_name(name, ms(5000))->size(), segment->size());
  restart.join();
}

TEST(FdServer, ReceiversKilledAtEverySystemCallDoNotDisturbIt) {
  if (!test::can_trace_children()) GTEST_SKIP() << "no ptrace here";
  const std::string name = fresh_name();
  const auto segment = Segment::create(1, layout);
  const FdServer server(name, segment->fd());
  const int deaths = test::kill_at_every_system_call(
      [&] {
        close(receive_fd(name, ms(5000)));
        return true;
      },
      [] {});
  EXPECT_GT(deaths, 8);
  attach_by_name(name, ms(5000));
}

}  // namespace
}  // namespace muster
