// SPDX-License-Identifier: BSD-3-Clause
// Pages, lines, and the NUMA node that a page lies on.
#pragma once

#include <cstddef>
#include <optional>

namespace muster {

/// Bytes of a page here, asked of the system, never assumed.
std::size_t page_size() noexcept;

/// Bytes that no two participants' cells may share: the longest line of any cache here, asked of
/// the system. At least 64; a Kunpeng 920 has 64 in its L1 and 128 in its L3.
std::size_t line_size() noexcept;

/// The least multiple of `unit` (any positive number) that is at least `bytes`. Throws
/// Error(no_memory) if no std::size_t is so large, Error(invalid) if `unit` is 0.
std::size_t round_up(std::size_t bytes, std::size_t unit);

/// Puts the whole pages that hold [address, address + bytes) on a NUMA node, by the system's number
/// for it: those that exist are moved, those to come will be allocated there, or elsewhere if that
/// NUMA node is full. `address` must be page-aligned. True if all of them are there afterwards;
/// false, with the memory as usable as before, if the NUMA node does not exist, the kernel or a
/// sandbox forbids it, or some page stayed.
///
/// A Segment's pages exist from its creation, on the creator's NUMA node: first touch alone does
/// not place them, this does. The kernel moves only pages that no other process has mapped yet. So
/// either the creator places every block before others attach, or each participant places its own
/// before anyone else touches it. Reads and writes go on unharmed meanwhile.
bool bind_to_numa(void* address, std::size_t bytes, unsigned numa_os_index) noexcept;

/// Where pages to come of whole pages of private memory are allocated: on a NUMA node, by the
/// system's number for it, or elsewhere if that one is full; without one, as by default. Pages that
/// exist stay. 0, or errno.
int prefer_numa(void* address, std::size_t bytes, std::optional<unsigned> numa_os_index) noexcept;

/// Of how many NUMA nodes this process may have memory; 0, with errno, if the kernel does not say.
unsigned numa_nodes_allowed() noexcept;
/// Whether that one is among them.
bool numa_node_allowed(unsigned numa_os_index) noexcept;

/// The NUMA node, by the system's number, of the page that holds `address`; -1 if that page does
/// not exist yet or the kernel does not say.
int numa_of_page(const void* address) noexcept;

}  // namespace muster
