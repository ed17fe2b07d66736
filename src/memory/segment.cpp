// SPDX-License-Identifier: BSD-3-Clause
#include "memory/segment.hpp"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <climits>

#include "machine/error.hpp"
#include "machine/format.hpp"
#include "memory/memory_room.hpp"
#include "memory/posix.hpp"
#include "memory/segment_header.hpp"

#ifndef MFD_NOEXEC_SEAL  // Linux 6.3
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace muster {
namespace {

constexpr const char* shm_path = "/dev/shm";
constexpr mode_t our_mode = 0600;
constexpr int our_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
/// Signals are let through between pieces of an allocation: this many bytes take some ms.
constexpr std::size_t allocation_step_bytes = 8U << 20;
/// Below this, asking how much memory is left costs more than it is worth.
constexpr std::size_t worth_asking_bytes = 4U << 20;
constexpr std::size_t stat_block_bytes = 512;

[[noreturn]] void fail(Status status, const std::string& message) { throw Error(status, message); }

[[noreturn]] void fail_system(const char* what, int error) {
  const bool too_many = error == EMFILE || error == ENFILE;
  fail(error == ENOMEM ? Status::no_memory : Status::system,
       format("creating a segment: {}: {}{}", what, errno_text(error),
              too_many ? "; close descriptors or raise the limit (ulimit -n)" : ""));
}

UniqueFd make_memfd() noexcept {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd fd(memfd_create("muster", flags | MFD_NOEXEC_SEAL));
  if (!fd && errno == EINVAL) fd.reset(memfd_create("muster", flags));  // an older kernel
  return fd;
}

bool denied(int error) { return error == ENOSYS || error == EPERM || error == EACCES; }

UniqueFd make_unsealed_file(int memfd_error) {
  // O_EXCL: it can never be given a name.
  UniqueFd fd(open(shm_path, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, our_mode));
  const int error = errno;
  struct statfs where {};
  if (fd && fstatfs(fd.get(), &where) == 0 && where.f_type == TMPFS_MAGIC) return fd;
  const std::string why = fd ? "it is no tmpfs" : errno_text(error);
  fail(Status::system,
       format("no shared memory: memfd_create: {}; an unnamed file in {}: {}; allow the "
              "former or mount a tmpfs there",
              errno_text(memfd_error), shm_path, why));
}

/// Refuses what would kill: more memory than there is wakes the kernel's OOM killer, more than
/// RLIMIT_FSIZE brings SIGXFSZ.
void demand_room(std::size_t bytes) {
  rlimit file_size{};
  if (getrlimit(RLIMIT_FSIZE, &file_size) == 0 && bytes > file_size.rlim_cur) {
    fail(Status::no_memory, format("a segment of {} bytes exceeds the limit on file sizes, {} "
                                   "bytes: raise it (ulimit -f)",
                                   bytes, file_size.rlim_cur));
  }
  if (bytes < worth_asking_bytes) return;
  const std::uint64_t room = memory_room();
  if (bytes > room) {
    fail(Status::no_memory, format("a segment of {} bytes does not fit: {} bytes are left to "
                                   "this process; use fewer participants or raise its memory "
                                   "limit",
                                   bytes, room));
  }
}

/// Gives the file all of its pages now: later, a page that is not to be had would be SIGBUS.
void allocate_pages(int fd, std::size_t bytes, bool in_shm) {
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t step = std::min(allocation_step_bytes, bytes - at);
    int error = 0;
    {
      // In many kernels any signal undoes the whole step: a storm of them would hold us forever.
      const SignalsBlocked quiet;
      error = posix_fallocate(fd, static_cast<off_t>(at), static_cast<off_t>(step));
    }
    if (error == 0) {
      at += step;
    } else if (error == ENOSPC || error == ENOMEM) {
      fail(Status::no_memory,
           in_shm ? format("a segment of {} bytes does not fit into {}: free some of it or "
                           "mount it with a larger size",
                           bytes, shm_path)
                  : format("a segment of {} bytes does not fit: {}; free memory or raise the "
                           "overcommit limit",
                           bytes, errno_text(error)));
    } else if (error == EFBIG) {
      fail(Status::no_memory, format("a segment of {} bytes is larger than a file can be", bytes));
    } else if (error != EINTR) {
      fail_system("posix_fallocate", error);
    }
  }
}

std::byte* map(int fd, std::size_t bytes) {
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address != MAP_FAILED) return static_cast<std::byte*>(address);
  const int error = errno;
  if (error == ENOMEM || error == EAGAIN) {
    fail(Status::no_memory,
         format("mapping a segment of {} bytes: {}; the address space, the number of mappings "
                "or locked memory is limited (ulimit -v, vm.max_map_count, ulimit -l)",
                bytes, errno_text(error)));
  }
  fail(Status::system, format("mapping a segment of {} bytes: {}", bytes, errno_text(error)));
}

class MappedSegment final : public Segment {
 public:
  MappedSegment(UniqueFd fd, std::size_t header_bytes, std::size_t total_bytes, pid_t creator,
                bool is_sealed)
      : fd_(std::move(fd)),
        base_(map(fd_.get(), total_bytes)),
        header_bytes_(header_bytes),
        total_bytes_(total_bytes),
        creator_(creator),
        sealed_(is_sealed) {}
  ~MappedSegment() override { munmap(base_, total_bytes_); }

  int fd() const noexcept override { return fd_.get(); }
  std::size_t size() const noexcept override { return total_bytes_ - header_bytes_; }
  std::byte* data() const noexcept override { return base_ + header_bytes_; }
  bool created_here() const noexcept override { return creator_ == getpid(); }
  bool sealed() const noexcept override { return sealed_; }

 private:
  UniqueFd fd_;
  std::byte* base_;
  std::size_t header_bytes_;
  std::size_t total_bytes_;
  pid_t creator_;  ///< 0 if attached
  bool sealed_;
};

const char* type_name(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a pipe";
    case S_IFSOCK:
      return "a socket";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    default:
      return "no regular file";
  }
}

/// In the sandbox that make_unsealed_file() is for, and a file it could have made?
bool is_unsealed_of_ours(const struct stat& file) {
  struct stat shm {};
  if (stat(shm_path, &shm) != 0 || file.st_dev != shm.st_dev) return false;
  return !make_memfd() && denied(errno);
}

struct Checked {
  std::size_t total_bytes;
  bool is_sealed;
};

/// What the file itself says, whatever is in it.
Checked check_file(int fd) {
  const auto demand = [](bool holds, const auto& explain) {
    if (!holds) fail(Status::foreign, explain());
  };
  struct stat file {};
  const int seals = fcntl(fd, F_GET_SEALS);  // before the size: what is sealed stays as it is
  if (fstat(fd, &file) != 0) {
    const int error = errno;
    fail(error == EBADF ? Status::invalid : Status::system,
         format("attaching to descriptor {}: {}; pass the one that the creator gave", fd,
                errno_text(error)));
  }
  demand(S_ISREG(file.st_mode), [&] {
    return format("not a Muster segment but {}: check which descriptor is passed",
                  type_name(file.st_mode));
  });
  demand(file.st_uid == geteuid(), [&] {
    return format(
        "the segment is user {}'s and this process is user {}'s: let all "
        "participants run as the same user",
        file.st_uid, geteuid());
  });
  demand((file.st_mode & 07777) == our_mode, [&] {
    return format(
        "the segment's file has mode {:04o} instead of 0600: others may have "
        "written to it; create it anew",
        file.st_mode & 07777);
  });
  demand(file.st_nlink == 0, [] {
    return "not a Muster segment: the file has a name in a file system, ours never have; check "
           "which descriptor is passed";
  });
  const int flags = fcntl(fd, F_GETFL);
  demand(flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) == O_RDWR, [] {
    return "the segment's descriptor is not open for reading and writing: pass on the creator's "
           "own";
  });
  const bool is_sealed = seals >= 0 && (seals & our_seals) == our_seals;
  demand(is_sealed || is_unsealed_of_ours(file), [] {
    return "the segment is not sealed against resizing, any process that holds it could make this "
           "one crash: create it with Muster, and where memfd_create works";
  });
  demand(seals < 0 || (seals & ~our_seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) == 0, [] {
    return "the segment is sealed against writing: pass the creator's own, not a read-only copy";
  });
  // A hole is a page that may not be to be had when it is touched.
  demand(static_cast<std::uint64_t>(file.st_blocks) * stat_block_bytes >=
             static_cast<std::uint64_t>(file.st_size),
         [] { return "the segment's pages are not all allocated: it is damaged, create it anew"; });
  return {static_cast<std::size_t>(file.st_size), is_sealed};
}

SegmentHeader read_header(int fd) {
  SegmentHeader header;
  ssize_t got = 0;
  do {
    got = pread(fd, &header, sizeof header, 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    fail(Status::system, "reading the segment's header: " + errno_text(errno));
  }
  if (got != sizeof header) {
    fail(Status::foreign, format("not a Muster segment: it has {} bytes, too few for a header; "
                                 "check which descriptor is passed",
                                 got));
  }
  return header;
}

}  // namespace

std::unique_ptr<Segment> Segment::create(std::size_t bytes, std::uint64_t layout_hash) {
  if (bytes == 0) fail(Status::invalid, "a segment has at least 1 byte");
  const std::size_t header_bytes = round_up(sizeof(SegmentHeader), page_size());
  const std::size_t data_bytes = round_up(bytes, page_size());
  if (data_bytes > PTRDIFF_MAX - header_bytes) {
    fail(Status::no_memory, format("{} bytes are more than can be addressed", bytes));
  }
  const std::size_t total_bytes = header_bytes + data_bytes;
  demand_room(total_bytes);

  UniqueFd file = make_memfd();
  const int memfd_error = errno;
  const bool can_seal = static_cast<bool>(file);
  if (!can_seal && !denied(memfd_error)) fail_system("memfd_create", memfd_error);
  if (!can_seal) file = make_unsealed_file(memfd_error);
  if (file.get() <= STDERR_FILENO) file = duplicate(file.get());
  if (!file) fail_system("fcntl(F_DUPFD_CLOEXEC)", errno);
  const int fd = file.get();
  if (fchmod(fd, our_mode) != 0) fail_system("fchmod", errno);
  allocate_pages(fd, total_bytes, !can_seal);

  SegmentHeader header;
  header.header_bytes = static_cast<std::uint32_t>(header_bytes);
  header.page_bytes = static_cast<std::uint32_t>(page_size());
  header.line_bytes = static_cast<std::uint32_t>(line_size());
  header.total_bytes = total_bytes;
  header.layout_hash = layout_hash;
  header.creator_uid = geteuid();
  header.creator_pid = static_cast<std::uint32_t>(getpid());
  header.sealed = can_seal ? 1 : 0;
  ssize_t written = 0;
  do {
    written = pwrite(fd, &header, sizeof header, 0);
  } while (written < 0 && errno == EINTR);
  if (written != sizeof header) fail_system("pwrite", written < 0 ? errno : EIO);
  if (can_seal && fcntl(fd, F_ADD_SEALS, our_seals) != 0) fail_system("fcntl(F_ADD_SEALS)", errno);
  return std::make_unique<MappedSegment>(std::move(file), header_bytes, total_bytes, getpid(),
                                         can_seal);
}

std::unique_ptr<Segment> Segment::attach(int fd, std::uint64_t layout_hash) {
  const Checked file = check_file(fd);
  const SegmentHeader header = read_header(fd);
  check_segment_header(header, {.page_bytes = page_size(),
                                .line_bytes = line_size(),
                                .file_bytes = file.total_bytes,
                                .layout_hash = layout_hash,
                                .owner_uid = geteuid(),
                                .sealed = file.is_sealed});
  UniqueFd own = duplicate(fd);
  if (!own) {
    fail(Status::system, format("attaching to a segment: {}; close descriptors or raise the "
                                "limit (ulimit -n)",
                                errno_text(errno)));
  }
  return std::make_unique<MappedSegment>(std::move(own), header.header_bytes, file.total_bytes, 0,
                                         file.is_sealed);
}

}  // namespace muster
