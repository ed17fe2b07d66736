// SPDX-License-Identifier: BSD-3-Clause
// Segment::attach with everything that is not a segment of ours.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <vector>

#include "children.hpp"
#include "memory/posix.hpp"
#include "memory/segment.hpp"
#include "memory/segment_header.hpp"

namespace muster {
namespace {

using test::error_text;
using testing::HasSubstr;

constexpr std::uint64_t layout = 0x1234;
constexpr int our_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

SegmentHeader good_header(std::size_t total_bytes) {
  SegmentHeader header;
  header.header_bytes = static_cast<std::uint32_t>(page_size());
  header.page_bytes = static_cast<std::uint32_t>(page_size());
  header.line_bytes = static_cast<std::uint32_t>(line_size());
  header.total_bytes = total_bytes;
  header.layout_hash = layout;
  header.creator_uid = geteuid();
  header.creator_pid = static_cast<std::uint32_t>(getpid());
  header.sealed = 1;
  return header;
}

/// A file as others might make it.
struct Forged {
  std::size_t bytes = 2 * page_size();
  SegmentHeader header = good_header(2 * page_size());
  unsigned memfd_flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int seals = our_seals;
  mode_t mode = 0600;
  bool allocate = true;

  UniqueFd make() const {
    UniqueFd fd(memfd_create("forged", memfd_flags));
    EXPECT_TRUE(fd);
    if (bytes > 0) {
      EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
      if (allocate) {
        EXPECT_EQ(posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)), 0);
      }
      const std::size_t written = std::min(bytes, sizeof header);
      EXPECT_EQ(pwrite(fd.get(), &header, written, 0), static_cast<ssize_t>(written));
    }
    EXPECT_EQ(fchmod(fd.get(), mode), 0);
    EXPECT_EQ(seals == 0 ? 0 : fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    return fd;
  }
};

std::string refusal(int fd, Status code = Status::foreign) {
  const std::size_t open = test::open_descriptors();
  const std::size_t mapped = test::mapped_segments();
  std::string text = error_text(code, [fd] { Segment::attach(fd, layout); });
  EXPECT_EQ(test::open_descriptors(), open);
  EXPECT_EQ(test::mapped_segments(), mapped);
  return text;
}

TEST(Foreign, AGoodForgeryIsAccepted) {  // or all that follows would prove nothing
  EXPECT_EQ(Segment::attach(Forged{}.make().get(), layout)->size(), page_size());
}

TEST(Foreign, EveryFieldIsJudgedWithAMessageOfItsOwn) {
  struct Case {
    const char* expected;
    std::function<void(SegmentHeader&)> damage;
  };
  const std::vector<Case> cases{
      {"first bytes are not ours", [](auto& h) { h.magic = 0; }},
      {"first bytes are not ours", [](auto& h) { h.magic = __builtin_bswap64(h.magic); }},
      {"version 2", [](auto& h) { h.version = 2; }},
      {"header claims 0 bytes", [](auto& h) { h.header_bytes = 0; }},
      {"header claims", [](auto& h) { h.header_bytes *= 2; }},
      {"pages of 0 bytes", [](auto& h) { h.page_bytes = 0; }},
      {"pages of", [](auto& h) { h.page_bytes *= 16; }},
      {"cache lines of 32 bytes", [](auto& h) { h.line_bytes = 32; }},
      {"but its file has", [](auto& h) { h.total_bytes += page_size(); }},
      {"but its file has", [](auto& h) { h.total_bytes = ~0ULL; }},
      {"holds layout 0x9", [](auto& h) { h.layout_hash = 9; }},
      {"claims to be of user", [](auto& h) { h.creator_uid += 1; }},
      {"impossible fields", [](auto& h) { h.creator_pid = 0; }},
      {"impossible fields", [](auto& h) { h.sealed = 2; }},
      {"impossible fields", [](auto& h) { h.reserved = 1; }},
      {"claims to be unsealed", [](auto& h) { h.sealed = 0; }},
  };
  for (const Case& c : cases) {
    Forged forged;
    c.damage(forged.header);
    EXPECT_THAT(refusal(forged.make().get()), HasSubstr(c.expected));
  }
}

TEST(Foreign, TruncatedFiles) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, sizeof(SegmentHeader) - 1, sizeof(SegmentHeader),
        page_size() - 1, page_size(), page_size() + 1, 2 * page_size() - 1}) {
    Forged forged;
    forged.bytes = bytes;
    forged.header = good_header(bytes);  // consistent, and yet no segment
    refusal(forged.make().get());
    forged.header = good_header(2 * page_size());
    refusal(forged.make().get());
  }
}

TEST(Foreign, FilesThatAreNotSealed) {
  for (const int seals : {0, F_SEAL_SEAL, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_SEAL,
                          F_SEAL_GROW | F_SEAL_SEAL}) {
    Forged forged;
    forged.seals = seals;
    EXPECT_THAT(refusal(forged.make().get()), HasSubstr("not sealed"));
    forged.header.sealed = 0;
    EXPECT_THAT(refusal(forged.make().get()), HasSubstr("not sealed"));
  }
  Forged forged;
  forged.memfd_flags = MFD_CLOEXEC;  // cannot be sealed at all
  forged.seals = 0;
  EXPECT_THAT(refusal(forged.make().get()), HasSubstr("not sealed"));
}

TEST(Foreign, AnUnsealedMemfdIsRefusedEvenWhereNothingCanBeSealed) {
  if (!test::can_deny_memfd()) GTEST_SKIP() << "no seccomp here";
  Forged forged;
  forged.seals = 0;
  forged.header.sealed = 0;
  const UniqueFd file = forged.make();
  EXPECT_EQ(test::in_child([&] {
              return test::deny_memfd() &&
                     refusal(file.get()).find("not sealed") != std::string::npos;
            }),
            0);
}

TEST(Foreign, OtherSealsAndModes) {
  for (const int seal : {F_SEAL_WRITE, F_SEAL_FUTURE_WRITE}) {
    Forged forged;
    forged.seals |= seal;
    EXPECT_THAT(refusal(forged.make().get()), HasSubstr("against writing"));
  }
  for (const mode_t mode : {0666U, 0644U, 0700U, 0000U, 0400U, 04600U}) {
    Forged forged;
    forged.mode = mode;
    EXPECT_THAT(refusal(forged.make().get()), HasSubstr("mode"));
  }
}

TEST(Foreign, FilesWithHoles) {
  Forged forged;
  forged.allocate = false;
  EXPECT_THAT(refusal(forged.make().get()), HasSubstr("not all allocated"));

  const UniqueFd punched = Forged{}.make();
  ASSERT_EQ(fallocate(punched.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      static_cast<off_t>(page_size()), static_cast<off_t>(page_size())),
            0);
  EXPECT_THAT(refusal(punched.get()), HasSubstr("not all allocated"));
}

TEST(Foreign, WhatIsNoMemfd) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  EXPECT_THAT(refusal(ends[0]), HasSubstr("a pipe"));
  EXPECT_THAT(refusal(ends[1]), HasSubstr("a pipe"));
  for (const int end : ends) close(end);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  EXPECT_THAT(refusal(ends[0]), HasSubstr("a socket"));
  for (const int end : ends) close(end);
  EXPECT_THAT(refusal(UniqueFd(open("/", O_RDONLY | O_CLOEXEC)).get()), HasSubstr("a directory"));
  EXPECT_THAT(refusal(UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)).get()),
              HasSubstr("a device"));

  std::string path = testing::TempDir() + "muster-foreign-XXXXXX";
  const UniqueFd file(mkostemp(path.data(), O_CLOEXEC));
  ASSERT_TRUE(file);
  EXPECT_THAT(refusal(file.get()), HasSubstr("has a name"));
  unlink(path.c_str());
  EXPECT_THAT(refusal(file.get()), HasSubstr("not sealed"));
}

TEST(Foreign, DescriptorsThatDoNotAllowIt) {
  const UniqueFd good = Forged{}.make();
  const std::string path = "/proc/self/fd/" + std::to_string(good.get());
  for (const int flags : {O_RDONLY, O_WRONLY, O_PATH}) {
    const UniqueFd other(open(path.c_str(), flags | O_CLOEXEC));
    ASSERT_TRUE(other);
    EXPECT_THAT(refusal(other.get()), HasSubstr("reading and writing"));
  }
  refusal(-1, Status::invalid);
  refusal(1 << 20, Status::invalid);
}

TEST(Foreign, AnotherUsersSegment) {
  if (!test::is_root()) GTEST_SKIP() << "only root can become another user";
  const auto segment = Segment::create(1, layout);
  EXPECT_EQ(test::in_child([&] {
              if (setuid(test::other_user) != 0) return false;
              return error_text(Status::foreign, [&] {
                       Segment::attach(segment->fd(), layout);
                     }).find("is user 0's") != std::string::npos;
            }),
            0);
  const UniqueFd given = Forged{}.make();
  ASSERT_EQ(fchown(given.get(), test::other_user, 0), 0);  // even root takes no other user's
  EXPECT_THAT(refusal(given.get()), HasSubstr("is user 65534's"));
}

TEST(Foreign, EveryByteOfTheHeaderChanged) {
  const auto segment = Segment::create(1, layout);
  std::set<std::size_t> harmless;
  for (std::size_t at = 0; at < sizeof(SegmentHeader); ++at) {
    unsigned char original = 0;
    ASSERT_EQ(pread(segment->fd(), &original, 1, static_cast<off_t>(at)), 1);
    for (unsigned change = 1; change < 256; ++change) {
      const auto damaged = static_cast<unsigned char>(original ^ change);
      ASSERT_EQ(pwrite(segment->fd(), &damaged, 1, static_cast<off_t>(at)), 1);
      try {
        const auto attached = Segment::attach(segment->fd(), layout);
        ASSERT_EQ(attached->size(), segment->size());
        harmless.insert(at);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), Status::foreign) << "byte " << at << ": " << error.what();
      }
    }
    ASSERT_EQ(pwrite(segment->fd(), &original, 1, static_cast<off_t>(at)), 1);
  }
  std::set<std::size_t> pid_bytes;
  for (std::size_t i = 0; i < 4; ++i) pid_bytes.insert(offsetof(SegmentHeader, creator_pid) + i);
  EXPECT_EQ(harmless, pid_bytes);
}

}  // namespace
}  // namespace muster
