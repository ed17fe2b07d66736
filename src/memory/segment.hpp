// SPDX-License-Identifier: BSD-3-Clause
// Memory that several processes share and that leaves nothing behind: an anonymous file (memfd),
// all of its pages allocated at creation, sealed against shrinking, never linked anywhere. It is
// handed on by descriptor, or by name over a socket.
//
// Its pages exist from creation, so that a full machine is an error then and never SIGBUS later.
// They lie on the creator's NUMA node until bind_to_numa (memory/pages.hpp) moves them.
//
// Where memfd_create is denied (some sandboxes), an unnamed file in /dev/shm serves instead. That
// cannot be sealed: a process of this user that holds its descriptor could shrink it, and the
// others would die of SIGBUS. So attach() takes an unsealed one only if it lies in this process's
// /dev/shm, was created as such, and this process could not have created a sealed one either: in
// the same sandbox, that is. Everywhere else an unsealed file is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "memory/pages.hpp"

namespace muster {

/// A mapping of shared memory in this process. Thread-safe but for destruction. A forked child
/// keeps a mapping and a descriptor of its own and may use and destroy the object.
class Segment {
 public:
  /// Creates one of at least `bytes` (rounded up to pages), zeroed. `layout_hash` names what is in
  /// it: attachers must know the same. Throws Error: invalid for 0 bytes, no_memory if the machine,
  /// a control group, /dev/shm or a resource limit has not so much, system for anything else.
  static std::unique_ptr<Segment> create(std::size_t bytes, std::uint64_t layout_hash);

  /// Maps the segment behind `fd` (duplicated; the caller keeps its own). Throws Error(foreign),
  /// saying what differs, unless it is one of ours: regular file of this user, mode 0600, linked
  /// nowhere, wholly allocated, sealed, and with a header of our magic, version, page size, line
  /// size, total size, owner and layout_hash. The header is judged on a private copy, and the file
  /// is mapped only after. Also: invalid if `fd` is no descriptor, no_memory if the address space
  /// is exhausted, system.
  static std::unique_ptr<Segment> attach(int fd, std::uint64_t layout_hash);

  virtual ~Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  virtual int fd() const noexcept = 0;             ///< close-on-exec; valid while this object lives
  virtual std::size_t size() const noexcept = 0;   ///< bytes that users may use, in whole pages
  virtual std::byte* data() const noexcept = 0;    ///< page-aligned; the header stands before it
  virtual bool created_here() const noexcept = 0;  ///< by this process, not by one it forked from
  virtual bool sealed() const noexcept = 0;        ///< no holder of a descriptor can resize it

 protected:
  Segment() = default;
};

/// Hands a segment's descriptor to processes of the same effective user that know its name, from a
/// thread of its own, until destroyed. Nothing appears in the file system: an abstract socket of
/// this network namespace, "\0muster-<uid>-<name>". Processes in other network namespaces cannot
/// see it; another user can take the name first (that is `busy` here and `foreign` for receivers),
/// but neither get the descriptor nor pass one off as ours.
///
/// The thread takes no signals. After fork the child has neither thread nor socket: its copy of the
/// object does nothing but may be destroyed. A child that was made without fork handlers (a plain
/// clone system call) and does not exec keeps the name taken until it ends.
class FdServer {
 public:
  /// `name`: 1 to 64 characters of [A-Za-z0-9._-]. `fd` is duplicated. Throws Error: busy if the
  /// name is taken, invalid, system.
  FdServer(const std::string& name, int fd);
  ~FdServer();
  FdServer(const FdServer&) = delete;
  FdServer& operator=(const FdServer&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The descriptor offered under `name`, waiting up to `timeout_ns` for it to appear (0: only if it
/// answers at once; INT64_MAX: forever). It is close-on-exec and the caller closes it. Throws
/// Error: timeout, foreign (another user's, or not from an FdServer), invalid (name, or negative
/// timeout), system.
int receive_fd(const std::string& name, std::int64_t timeout_ns);

}  // namespace muster
