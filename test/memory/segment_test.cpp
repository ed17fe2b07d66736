// SPDX-License-Identifier: BSD-3-Clause
#include "memory/segment.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "children.hpp"
#include "memory/posix.hpp"

namespace muster {
namespace {

using test::error_text;
using test::in_child;
using testing::HasSubstr;

constexpr std::uint64_t layout = 0x1234;

TEST(Segment, IsZeroedWholePagesAndAligned) {
  for (const std::size_t bytes : {std::size_t{1}, page_size(), page_size() + 1}) {
    const auto segment = Segment::create(bytes, layout);
    EXPECT_EQ(segment->size(), round_up(bytes, page_size()));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment->data()) % page_size(), 0U);
    EXPECT_TRUE(segment->created_here());
    EXPECT_TRUE(segment->sealed());
    for (std::size_t i = 0; i < segment->size(); ++i) {
      ASSERT_EQ(segment->data()[i], std::byte{0});
    }
  }
}

TEST(Segment, AttachersSeeTheSameBytesAtAnotherAddress) {
  const auto mine = Segment::create(3 * page_size(), layout);
  const auto theirs = Segment::attach(mine->fd(), layout);
  EXPECT_NE(mine->data(), theirs->data());
  EXPECT_NE(mine->fd(), theirs->fd());
  EXPECT_EQ(mine->size(), theirs->size());
  EXPECT_FALSE(theirs->created_here());
  EXPECT_TRUE(theirs->sealed());
  mine->data()[mine->size() - 1] = std::byte{42};
  EXPECT_EQ(theirs->data()[mine->size() - 1], std::byte{42});
}

TEST(Segment, TheFileIsPrivateUnnamedAndDoesNotSurviveExec) {
  const auto segment = Segment::create(1, layout);
  struct stat file {};
  ASSERT_EQ(fstat(segment->fd(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0600U);
  EXPECT_EQ(file.st_nlink, 0U);
  EXPECT_EQ(file.st_uid, geteuid());
  EXPECT_NE(fcntl(segment->fd(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(fcntl(Segment::attach(segment->fd(), layout)->fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Segment, AStandardStreamsNumberIsNeverUsed) {
  EXPECT_EQ(in_child([] {
              for (const int fd : {0, 1, 2}) close(fd);
              const auto segment = Segment::create(1, layout);
              const auto other = Segment::attach(segment->fd(), layout);
              return segment->fd() > 2 && other->fd() > 2 && fcntl(0, F_GETFD) < 0;
            }),
            0);
}

TEST(Segment, NothingStaysOpenOrMapped) {
  const auto before = test::leftovers();
  const std::size_t open = test::open_descriptors();
  ASSERT_EQ(test::mapped_segments(), 0U);
  for (int i = 0; i < 100; ++i) {
    const auto segment = Segment::create(1, layout);
    const auto other = Segment::attach(segment->fd(), layout);
    ASSERT_GT(test::mapped_segments(), 0U);
    EXPECT_THROW(Segment::attach(segment->fd(), layout + 1), Error);
  }
  EXPECT_EQ(test::mapped_segments(), 0U);
  EXPECT_EQ(test::open_descriptors(), open);
  EXPECT_EQ(test::leftovers(), before);
}

TEST(Segment, AForkedChildMayDestroyItsCopy) {
  auto segment = Segment::create(1, layout);
  EXPECT_EQ(in_child([&] {
              const bool created = segment->created_here();
              segment->data()[0] = std::byte{7};
              segment.reset();
              return !created;
            }),
            0);
  EXPECT_EQ(segment->data()[0], std::byte{7});
  EXPECT_TRUE(segment->created_here());
}

TEST(Segment, NoPeerCanResizeOrUnseal) {
  const auto segment = Segment::create(4 * page_size(), layout);
  EXPECT_EQ(in_child([&] {
              const auto denied = [](int result) { return result != 0 && errno == EPERM; };
              const int fd = segment->fd();
              struct stat file {};
              fstat(fd, &file);
              return denied(ftruncate(fd, 0)) && denied(ftruncate(fd, file.st_size - 1)) &&
                     denied(ftruncate(fd, file.st_size + 1)) &&
                     denied(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
            }),
            0);
  segment->data()[segment->size() - 1] = std::byte{1};
}

// What does not fit is an error, and never a signal.

/// If what is tested here fails, this process must die of it, soon, and nobody else's.
void confine_to_ms_of_cpu(int cpu_ms) {
  std::ofstream("/proc/self/oom_score_adj") << 1000;
  const itimerval limit{{0, 0}, {0, cpu_ms * 1000}};
  setitimer(ITIMER_PROF, &limit, nullptr);  // SIGPROF kills, after some 100 MiB of allocation
}

TEST(SegmentTooLarge, NoBytesAtAll) {
  error_text(Status::invalid, [] { Segment::create(0, layout); });
}

TEST(SegmentTooLarge, MoreThanCanBeAddressedOrThanTheMachineHas) {
  EXPECT_EQ(in_child([] {
              confine_to_ms_of_cpu(60);
              for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - page_size(), SIZE_MAX / 2}) {
                error_text(Status::no_memory, [&] { Segment::create(bytes, layout); });
              }
              return error_text(Status::no_memory, [] {
                       Segment::create(SIZE_MAX / 8, layout);
                     }).find("are left to this process") != std::string::npos;
            }),
            0);
}

TEST(SegmentTooLarge, MoreThanAFileMayHave) {
  const auto limited = [](std::size_t bytes) {
    return in_child([bytes] {
      const rlimit limit{1 << 20, 1 << 20};
      setrlimit(RLIMIT_FSIZE, &limit);
      return error_text(Status::no_memory, [bytes] {
               Segment::create(bytes, layout);
             }).find("ulimit -f") != std::string::npos;
    });
  };
  EXPECT_EQ(limited(2 << 20), 0);
  EXPECT_EQ(limited(1 << 20), 0);  // the header does not fit
}

TEST(SegmentTooLarge, MoreAddressesThanAreLeft) {
  EXPECT_EQ(in_child([] {
              std::size_t pages = 0;
              std::ifstream("/proc/self/statm") >> pages;
              const rlimit limit{pages * page_size() + (16U << 20), RLIM_INFINITY};
              setrlimit(RLIMIT_AS, &limit);
              const std::size_t open = test::open_descriptors();
              return error_text(Status::no_memory, [] { Segment::create(48U << 20, layout); })
                             .find("ulimit -v") != std::string::npos &&
                     test::open_descriptors() == open;
            }),
            0);
}

TEST(SegmentTooLarge, NoDescriptorsLeft) {
  const auto segment = Segment::create(1, layout);
  EXPECT_EQ(in_child([&] {
              const int next = dup(0);
              const rlimit limit{static_cast<rlim_t>(next) + 1, static_cast<rlim_t>(next) + 1};
              setrlimit(RLIMIT_NOFILE, &limit);
              const auto says = [](const std::function<void()>& body) {
                return error_text(Status::system, body).find("ulimit -n") != std::string::npos;
              };
              return says([] { Segment::create(1, layout); }) &&
                     says([&] { Segment::attach(segment->fd(), layout); });
            }),
            0);
}

TEST(SegmentTooLarge, AStormOfSignalsDoesNotHoldItUp) {
  EXPECT_EQ(in_child([] {
              struct sigaction action {};
              action.sa_handler = [](int) {};
              sigaction(SIGALRM, &action, nullptr);
              const itimerval storm{{0, 100}, {0, 100}};
              setitimer(ITIMER_REAL, &storm, nullptr);
              return Segment::create(32U << 20, layout)->size() == 32U << 20;
            }),
            0);
}

TEST(SegmentInDevShm, NeitherMemfdNorTmpfsIsAnError) {
  if (!test::can_have_small_dev_shm()) GTEST_SKIP() << "mounting over /dev/shm needs root";
  EXPECT_EQ(
      in_child([] {
        if (!test::small_dev_shm() || mount("/proc", "/dev/shm", nullptr, MS_BIND, nullptr) != 0)
          return false;
        return error_text(Status::system, [] {
                 Segment::create(1, layout);
               }).find("memfd_create") != std::string::npos;
      }),
      0);
}

TEST(SegmentInDevShm, ServesTheSameSandboxOnly) {
  if (!test::can_deny_memfd()) GTEST_SKIP() << "no seccomp here";
  test::Channel channel;
  test::Child sandbox([&] {
    const auto before = test::leftovers();
    if (!test::deny_memfd()) return false;
    const auto segment = Segment::create(1, layout);
    const auto again = Segment::attach(segment->fd(), layout);
    again->data()[0] = std::byte{9};
    const bool good = !segment->sealed() && !again->sealed() &&
                      segment->data()[0] == std::byte{9} && test::leftovers() == before;
    const int fd = good ? segment->fd() : -1;
    if (!channel.send(fd)) return false;
    pause();
    return true;
  });
  const int fd = channel.receive();
  ASSERT_GE(fd, 0);
  const std::string path = "/proc/" + std::to_string(sandbox.pid()) + "/fd/" + std::to_string(fd);
  const UniqueFd outside(open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(outside);
  EXPECT_THAT(error_text(Status::foreign, [&] { Segment::attach(outside.get(), layout); }),
              HasSubstr("not sealed"));
}

// Death of the creator; at every step, and of an attacher: capi/fault_creation_test.cpp.

TEST(SegmentAfterDeath, OfTheCreatorInDevShmNothingIsLeft) {
  if (!test::can_trace_children()) GTEST_SKIP() << "no ptrace here";
  line_size();
  const auto before = test::leftovers();
  if (!test::can_deny_memfd()) GTEST_SKIP() << "no seccomp here";
  const int deaths = test::kill_at_every_system_call(
      [] { return test::deny_memfd() && Segment::create(1, layout) != nullptr; },
      [&] { ASSERT_EQ(test::leftovers(), before); });
  EXPECT_GT(deaths, 12);
}

TEST(SegmentAfterDeath, OfTheCreatorAttachersStillGetIn) {
  test::Channel channel;
  test::Child creator([&] {
    const auto segment = Segment::create(1, layout);
    segment->data()[0] = std::byte{77};
    const int fd = segment->fd();
    if (!channel.send(fd)) return false;
    pause();
    return true;
  });
  const int fd = channel.receive();
  ASSERT_GE(fd, 0);
  const std::string path = "/proc/" + std::to_string(creator.pid()) + "/fd/" + std::to_string(fd);
  const UniqueFd mine(open(path.c_str(), O_RDWR | O_CLOEXEC));
  creator.kill_9();
  const auto segment = Segment::attach(mine.get(), layout);
  EXPECT_EQ(segment->data()[0], std::byte{77});
  EXPECT_FALSE(segment->created_here());
}

}  // namespace
}  // namespace muster
