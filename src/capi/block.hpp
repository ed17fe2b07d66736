// SPDX-License-Identifier: BSD-3-Clause
// A barrier in memory. From its first byte: header and description (the plan, for attachers), the
// domain's line, the algorithm's global cells, then one block a rank: the rank's mark, then its
// cells. Every cell has a line to itself. Only offsets, no pointers.
//
// Rank blocks are whole pages where first touch matters, so that each rank's can be on its own NUMA
// node [K22, section 2.1].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "capi/plan.hpp"
#include "machine/hardware.hpp"

namespace muster {

/// Names what is in a segment made for one barrier, or for many: attachers must be of the same
/// layout.
inline constexpr std::uint64_t layout_hash = 0x4d55'5354'0001'0009;  // "MUST", format 1, revision 9

/// A rank's own line: who uses the rank, and how far it is. Written by the rank alone.
struct Mark {
  std::atomic<Word> pid;    ///< own_process() of who waits as this rank; 0 before its first wait
  std::atomic<Word> phase;  ///< 2 e after its e-th wait, 2 e + 1 inside the next; modular
  std::atomic<Word> looks;  ///< in vain, in a long wait; see wait/standstill.hpp
};

/// Instead of a pid: its process has destroyed its side of the barrier.
inline constexpr Word departed = ~Word{0};

/// Where things are in a block; made from a plan, or read from a block's header.
struct BlockLayout {
  std::size_t line = 64;
  /// Two lines: what different participants write stands so far apart, since prefetchers fetch a
  /// line's neighbour with it. 1.7x at P = 2 on Zen where a rank's mark shared a pair with a flag.
  std::size_t pair = 128;
  std::size_t description = 0;  ///< offset; `description_bytes` long
  std::size_t description_bytes = 0;
  std::size_t domain = 0;
  std::size_t global = 0;
  std::size_t ranks = 0;
  std::size_t rank_stride = 0;
  std::size_t words = 0;
  std::size_t bytes = 0;
  std::size_t alignment = 64;  ///< of the whole block: a line, or a page
  bool paged = false;          ///< rank blocks are whole pages
};

class Block {
 public:
  /// What a plan's block takes. `paged` where the participants span NUMA nodes.
  static BlockLayout lay_out(const Plan& plan);

  /// Writes a plan into zeroed memory, which must outlive the block. Nobody can attach yet.
  static Block create(std::byte* memory, const BlockLayout& layout, const Plan& plan);

  /// Reads a block that another made. `available`: bytes that may be touched. Everything is copied
  /// before it is checked. Throws Error(foreign), saying what is wrong.
  static Block attach(std::byte* memory, std::size_t available, Plan& plan);

  /// Writes the magic: others may attach.
  void open() const;
  /// Takes it back: nobody attaches any more.
  void retire() const;

  const BlockLayout& layout() const { return layout_; }
  std::byte* memory() const { return memory_; }
  Hardware::Domain& domain() const {
    return *std::launder(reinterpret_cast<Hardware::Domain*>(memory_ + layout_.domain));
  }
  Mark& mark(unsigned rank) const {
    return *std::launder(reinterpret_cast<Mark*>(rank_memory(rank)));
  }
  Hardware::Cells cells() const;
  std::byte* rank_memory(unsigned rank) const {
    return memory_ + layout_.ranks + rank * layout_.rank_stride;
  }

 private:
  Block(std::byte* memory, const BlockLayout& layout) : memory_(memory), layout_(layout) {}

  std::byte* memory_;
  BlockLayout layout_;
};

}  // namespace muster
