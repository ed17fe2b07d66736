// SPDX-License-Identifier: BSD-3-Clause
#include "pages_of.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace muster::test {

std::vector<int> numa_of_pages(const void* address, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(address) / page * page;
  std::vector<void*> pages;
  for (std::uintptr_t at = first; at < reinterpret_cast<std::uintptr_t>(address) + bytes;
       at += page) {
    pages.push_back(reinterpret_cast<void*>(at));
  }
  std::vector<int> numa(pages.size(), -EIO);
  if (syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, numa.data(), 0) != 0) {
    std::fill(numa.begin(), numa.end(), -errno);
  }
  return numa;
}

std::vector<int> numa_nodes_of_pages(const void* address, std::size_t bytes) {
  std::vector<int> nodes = numa_of_pages(address, bytes);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

bool bind_to_cpu(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

unsigned numa_of_this_thread() {
  unsigned cpu = 0;
  unsigned numa = ~0U;
  syscall(SYS_getcpu, &cpu, &numa, nullptr);
  return numa;
}

}  // namespace muster::test
