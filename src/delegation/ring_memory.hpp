// SPDX-License-Identifier: BSD-3-Clause
// How the rings of a station lie in memory: for each client the entries, a request beside each, and
// then a line for what their sections leave in errno. All sizes are constants: between a request
// and its answer each instruction is time that the client waits.
#pragma once

#include <bit>
#include <cstddef>
#include <new>

#include "delegation/port.hpp"
#include "lock/rings.hpp"

namespace muster::delegation {

inline constexpr unsigned ring_depth = 16;  ///< requests that a client may have outstanding

inline constexpr std::size_t entry_bytes = 32;
static_assert(sizeof(Hardware::Cell) + sizeof(Request) <= entry_bytes);

/// Of a client's cells, up to the line of errno.
inline constexpr std::size_t ring_cells_bytes =
    (locks::cells_per_ring(ring_depth) * entry_bytes + line_bytes - 1) / line_bytes * line_bytes;
inline constexpr std::size_t ring_bytes = ring_cells_bytes + line_bytes;
static_assert(ring_depth * sizeof(int) <= line_bytes);

using RingBoard = Board<BoardShape{.stride = ring_bytes,
                                   .spacing = entry_bytes,
                                   .group_bits = std::countr_zero(ring_depth),
                                   .errors_at = ring_cells_bytes - sizeof(Hardware::Cell)}>;

/// Hardware with these rings, and global cells on a line each.
class RingPort : public Port {
 public:
  using Port::Port;

  class Cells {
   public:
    Cells(std::byte* global, std::byte* rings) noexcept : global_(global), rings_(rings) {}
    Cell& global(unsigned index) const noexcept { return at(global_ + index * line_bytes); }
    Cell& of(unsigned client, unsigned index) const noexcept {
      return at(rings_ + client * ring_bytes + index * entry_bytes);
    }
    RingBoard board() const noexcept { return {rings_ + sizeof(Cell)}; }

   private:
    static Cell& at(std::byte* where) noexcept {
      return *std::launder(reinterpret_cast<Cell*>(where));
    }
    std::byte* global_;
    std::byte* rings_;
  };
};

}  // namespace muster::delegation
