// SPDX-License-Identifier: BSD-3-Clause
#include "memory/segment_header.hpp"

#include "machine/error.hpp"
#include "machine/format.hpp"
#include "memory/pages.hpp"

namespace muster {

void check_segment_header(const SegmentHeader& header, const SegmentFacts& facts) {
  const auto demand = [](bool holds, const auto& explain) {
    if (!holds) throw Error(Status::foreign, explain());
  };
  demand(header.magic == SegmentHeader::our_magic, [] {
    return "not a Muster segment: its first bytes are not ours; check which descriptor is passed";
  });
  demand(header.version == SegmentHeader::our_version, [&] {
    return format(
        "the segment's format is version {}, this library knows {}: let all processes use the same "
        "libmuster",
        header.version, SegmentHeader::our_version);
  });
  demand(header.page_bytes == facts.page_bytes, [&] {
    return format(
        "the segment was laid out for pages of {} bytes, here they have {}: its "
        "header is damaged, create it anew",
        header.page_bytes, facts.page_bytes);
  });
  demand(header.line_bytes == facts.line_bytes, [&] {
    return format(
        "the segment was laid out for cache lines of {} bytes, here they have {}: "
        "let creator and attacher see the same /sys/devices/system/cpu",
        header.line_bytes, facts.line_bytes);
  });
  const std::size_t header_bytes = round_up(sizeof(SegmentHeader), facts.page_bytes);
  demand(header.header_bytes == header_bytes, [&] {
    return format(
        "the segment's header claims {} bytes instead of {}: it is damaged, create "
        "it anew",
        header.header_bytes, header_bytes);
  });
  demand(header.total_bytes == facts.file_bytes, [&] {
    return format(
        "the segment claims {} bytes, but its file has {}: it is damaged, create it "
        "anew",
        header.total_bytes, facts.file_bytes);
  });
  demand(header.total_bytes > header_bytes && header.total_bytes % facts.page_bytes == 0, [&] {
    return format(
        "the segment's {} bytes are not whole pages with data in them: it is "
        "damaged, create it anew",
        header.total_bytes);
  });
  demand(header.creator_uid == facts.owner_uid, [&] {
    return format(
        "the segment claims to be of user {}, but its file is owned by user {}: do "
        "not trust it",
        header.creator_uid, facts.owner_uid);
  });
  demand(header.creator_pid != 0 && header.sealed <= 1 && header.reserved == 0, [] {
    return "the segment's header has impossible fields: it is damaged, create it anew";
  });
  demand((header.sealed == 1) == facts.sealed, [&] {
    return format(
        "the segment claims to be {}sealed, but its file is {}sealed: do not trust "
        "it",
        header.sealed == 1 ? "" : "un", facts.sealed ? "" : "un");
  });
  demand(header.layout_hash == facts.layout_hash, [&] {
    return format(
        "the segment holds layout {:#x}, expected {:#x}: let all processes use the "
        "same libmuster and the same kind of object",
        header.layout_hash, facts.layout_hash);
  });
}

}  // namespace muster
