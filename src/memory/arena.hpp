// SPDX-License-Identifier: BSD-3-Clause
// Which parts of a buffer are taken: so that thousands of barriers can share one segment.
#pragma once

#include <cstddef>
#include <map>

namespace muster {

/// Hands out extents of a buffer of `size` bytes, by offset. It never touches the buffer itself:
/// its books are this process's own, so that no other process can corrupt them. Hence only one
/// process, the one that created the segment, may allocate in it, and a forked child must not go on
/// with its copy; others are told offsets.
///
/// First fit by address; neighbours that are free are merged. Cost: O(free extents) to allocate,
/// O(log) to free. Not thread-safe: the caller locks.
class SubAllocator {
 public:
  static constexpr std::size_t npos = ~std::size_t{0};

  explicit SubAllocator(std::size_t size);

  /// The offset of `bytes` free bytes, a multiple of `alignment` (any positive number, counted from
  /// the buffer's start); npos if no free extent is large enough. Throws Error(invalid) if `bytes`
  /// or `alignment` is 0; std::bad_alloc, with nothing done.
  std::size_t allocate(std::size_t bytes, std::size_t alignment);

  /// Gives back what allocate() returned at `offset`. Throws Error(invalid) if nothing is allocated
  /// there (given back twice), and nothing else.
  void free(std::size_t offset);

 private:
  std::map<std::size_t, std::size_t> free_;  ///< offset -> bytes; never adjacent
  std::map<std::size_t, std::size_t> used_;  ///< offset -> bytes
};

}  // namespace muster
