// SPDX-License-Identifier: BSD-3-Clause
// Memory that several processes share and that leaves nothing behind: an anonymous file (memfd), all of its pages allocated at
// creation, sealed against shrinking, unlinked from the start. It is handed on by descriptor, or by name over a socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace muster {

/// Bytes of a page and of a cache line here, asked of the system, never assumed. The line is at least 64.
std::size_t page_size() noexcept;
std::size_t line_size() noexcept;

/// A mapping of shared memory in this process. Thread-safe but for destruction.
class Segment {
 public:
  /// Creates one of at least `bytes` (rounded up to pages), zeroed. `layout_hash` names what is in it: attachers must know the same.
  /// Throws Error: no_memory if there is not so much, system for anything else.
  static std::unique_ptr<Segment> create(std::size_t bytes, std::uint64_t layout_hash);

  /// Maps the segment behind `fd` (duplicated; the caller keeps its own). Throws Error(foreign), saying what differs, unless it is
  /// one of ours: regular file of this user, mode 0600, sealed, magic, version, sizes, layout_hash.
  static std::unique_ptr<Segment> attach(int fd, std::uint64_t layout_hash);

  virtual ~Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  virtual int fd() const noexcept = 0;          ///< close-on-exec; valid while this object lives
  virtual std::size_t size() const noexcept = 0;  ///< bytes that users may use
  virtual std::byte* data() const noexcept = 0;   ///< page-aligned; the header stands before it
  virtual bool created_here() const noexcept = 0;  ///< this process created it

 protected:
  Segment() = default;
};

/// Hands a segment's descriptor to processes of the same user that know its name, from a thread of its own, until destroyed. Nothing
/// appears in the file system (an abstract socket of this network namespace).
class FdServer {
 public:
  /// `name`: 1 to 64 characters of [A-Za-z0-9._-]. Throws Error: busy if the name is taken, invalid, system.
  FdServer(std::string name, int fd);
  ~FdServer();
  FdServer(const FdServer&) = delete;
  FdServer& operator=(const FdServer&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The descriptor offered under `name`, waiting up to `timeout_ns` for it to appear. The caller closes it. Throws Error: timeout,
/// foreign (another user's), invalid, system.
int receive_fd(const std::string& name, std::int64_t timeout_ns);

}  // namespace muster
