// SPDX-License-Identifier: BSD-3-Clause
// What the kernel says about pages and threads, asked past our own code.
#pragma once

#include <cstddef>
#include <vector>

namespace muster::test {

/// The NUMA node of every page of [address, address + bytes), by move_pages; negative: -errno.
std::vector<int> numa_of_pages(const void* address, std::size_t bytes);

/// The NUMA nodes of those pages, each once, ascending.
std::vector<int> numa_nodes_of_pages(const void* address, std::size_t bytes);

/// Binds the calling thread. False if the kernel refuses.
bool bind_to_cpu(unsigned cpu);

/// The NUMA node that the calling thread is on, by getcpu.
unsigned numa_of_this_thread();

}  // namespace muster::test
