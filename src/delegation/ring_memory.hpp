// SPDX-License-Identifier: BSD-3-Clause
// How the rings of a station lie in memory: for each client the entries, a request beside each and
// what is copied with it, and then a line for what their sections leave in errno. All sizes are
// constants: between a request and its answer each instruction is time that the client waits.
#pragma once

#include <bit>
#include <cstddef>

#include "delegation/port.hpp"
#include "lock/rings.hpp"
#include "machine/mutual.hpp"
#include "wait/linger.hpp"

namespace muster::delegation {

inline constexpr unsigned ring_depth = 16;  ///< requests that a client may have outstanding

inline constexpr std::size_t entry_bytes = 64;
static_assert(sizeof(Hardware::Cell) + sizeof(Section) + copied_bytes_max <= entry_bytes);

/// Of a client's cells, up to the line of errno.
inline constexpr std::size_t ring_cells_bytes =
    (locks::cells_per_ring(ring_depth) * entry_bytes + line_bytes - 1) / line_bytes * line_bytes;
inline constexpr std::size_t ring_bytes = ring_cells_bytes + line_bytes;
static_assert(ring_depth * sizeof(int) <= line_bytes);

using RingBoard = Board<BoardShape{.stride = ring_bytes,
                                   .spacing = entry_bytes,
                                   .group_bits = std::countr_zero(ring_depth),
                                   .errors_at = ring_cells_bytes - sizeof(Hardware::Cell)}>;

/// Hardware with these rings.
class RingPort : public Port {
 public:
  using Port::Port;
  using Cells = FixedCells<ring_bytes, entry_bytes>;
};

/// The machine of lock/numbers.hpp.
class NumbersPort : public RingPort {
 public:
  using RingPort::RingPort;
  using Mutex = Mutual::Mutex;

  static auto within(Mutex& mutex, auto body) { return Mutual::within(mutex, body); }
  static void linger(unsigned looks) noexcept { muster::linger(looks); }
};

}  // namespace muster::delegation
