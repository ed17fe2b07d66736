// SPDX-License-Identifier: BSD-3-Clause
// The first bytes of a segment, and what they must say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace muster {

/// Written once by the creator; the data begin at the next whole page. Every field is compared with
/// something known otherwise, so none of them can lead an attacher astray: only `creator_pid`,
/// which is for people, may have any value but 0.
struct SegmentHeader {
  static constexpr std::uint64_t our_magic = 0x475352455453554d;  // "MUSTERSG", little-endian
  static constexpr std::uint32_t our_version = 1;

  std::uint64_t magic = our_magic;  ///< of another byte order: another magic
  std::uint32_t version = our_version;
  std::uint32_t header_bytes = 0;  ///< whole pages, before the data
  std::uint32_t page_bytes = 0;
  std::uint32_t line_bytes = 0;
  std::uint64_t total_bytes = 0;  ///< of the file: header and data
  std::uint64_t layout_hash = 0;
  std::uint32_t creator_uid = 0;
  std::uint32_t creator_pid = 0;
  std::uint32_t sealed = 0;  ///< 1, or 0 if created where nothing can be sealed
  std::uint32_t reserved = 0;
};
static_assert(sizeof(SegmentHeader) == 56 && std::is_trivially_copyable_v<SegmentHeader>);

/// What an attacher knows without the header.
struct SegmentFacts {
  std::size_t page_bytes = 0;
  std::size_t line_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t layout_hash = 0;
  std::uint32_t owner_uid = 0;
  bool sealed = false;
};

/// Throws Error(foreign), saying what differs and what to do, unless a creator who knew `facts`
/// could have written the header. Give it a copy that nobody else can write to. Reads nothing else.
void check_segment_header(const SegmentHeader& header, const SegmentFacts& facts);

}  // namespace muster
