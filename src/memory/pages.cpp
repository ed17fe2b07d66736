// SPDX-License-Identifier: BSD-3-Clause
#include "memory/pages.hpp"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <string>

#include "machine/cgroup.hpp"
#include "machine/error.hpp"

#ifndef MADV_POPULATE_WRITE  // Linux 5.14
#define MADV_POPULATE_WRITE 23
#endif

namespace muster {
namespace {

constexpr std::size_t least_line = 64;
constexpr std::size_t longest_plausible_line = 4096;

std::size_t plausible_line(long bytes) {
  const auto size = static_cast<std::size_t>(std::max(bytes, 0L));
  return std::has_single_bit(size) && size <= longest_plausible_line ? size : 0;
}

std::size_t ask_line_size() {
  std::size_t longest = least_line;
  for (const int name : {_SC_LEVEL1_DCACHE_LINESIZE, _SC_LEVEL2_CACHE_LINESIZE,
                         _SC_LEVEL3_CACHE_LINESIZE, _SC_LEVEL4_CACHE_LINESIZE}) {
    longest = std::max(longest, plausible_line(sysconf(name)));
  }
  // The C library knows nothing on some architectures.
  for (int index = 0;; ++index) {
    const std::string text = read_small_file("/sys/devices/system/cpu/cpu0/cache/index" +
                                             std::to_string(index) + "/coherency_line_size");
    if (text.empty()) return longest;
    long bytes = 0;
    std::from_chars(text.data(), text.data() + text.size(), bytes);
    longest = std::max(longest, plausible_line(bytes));
  }
}

/// Makes every page exist in this process, with the contents it has.
void touch(std::byte* first, std::size_t bytes) {
  if (madvise(first, bytes, MADV_POPULATE_WRITE) == 0) return;
  for (std::size_t at = 0; at < bytes; at += page_size()) {
    // An addition of nothing is a write that loses nobody else's.
    auto& word = *reinterpret_cast<std::uint32_t*>(first + at);
    std::atomic_ref(word).fetch_add(0, std::memory_order_relaxed);
  }
}

constexpr unsigned word_bits = sizeof(unsigned long) * CHAR_BIT;
using NumaMask = std::array<unsigned long, 64>;  // 4096 NUMA nodes; Linux is built for at most 1024
constexpr unsigned numa_nodes_max = NumaMask{}.size() * word_bits;

/// 0, or errno. Preferred, not bound: a full NUMA node must not become SIGBUS.
int set_policy(void* address, std::size_t bytes, std::optional<unsigned> numa, unsigned flags) {
  NumaMask mask{};
  if (numa) {
    if (*numa >= numa_nodes_max) return EINVAL;
    mask[*numa / word_bits] |= 1UL << (*numa % word_bits);
  }
  const int policy = numa ? MPOL_PREFERRED : MPOL_DEFAULT;
  // The kernel takes one bit less than it is told; by default there is to be no mask at all.
  const unsigned long* const nodes = numa ? mask.data() : nullptr;
  const unsigned long bits = numa ? *numa + 2UL : 0;
  return syscall(SYS_mbind, address, bytes, policy, nodes, bits, flags) == 0 ? 0 : errno;
}

bool ask_allowed(NumaMask& mask) {
  return syscall(SYS_get_mempolicy, nullptr, mask.data(), numa_nodes_max, nullptr,
                 MPOL_F_MEMS_ALLOWED) == 0;
}

}  // namespace

std::size_t page_size() noexcept { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t line_size() noexcept {
  // Without a static's guard, which a fork's child might find taken; asked twice it is the same.
  static constinit std::atomic<std::size_t> known{0};
  std::size_t size = known.load(std::memory_order_relaxed);
  if (size == 0) {
    size = ask_line_size();
    known.store(size, std::memory_order_relaxed);
  }
  return size;
}

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  if (unit == 0) throw Error(Status::invalid, "cannot round up to a multiple of 0 bytes");
  const std::size_t over = bytes % unit;
  if (over == 0) return bytes;
  if (bytes > SIZE_MAX - (unit - over)) {
    throw Error(Status::no_memory, std::to_string(bytes) + " bytes are more than can be addressed");
  }
  return bytes + (unit - over);
}

bool bind_to_numa(void* address, std::size_t bytes, unsigned numa_os_index) noexcept {
  auto* const first = static_cast<std::byte*>(address);
  const std::size_t page = page_size();
  if (bytes == 0 || reinterpret_cast<std::uintptr_t>(address) % page != 0 ||
      bytes > SIZE_MAX - page) {
    return false;
  }
  const std::size_t length = (bytes + page - 1) / page * page;
  const auto all_there = [&] {
    for (std::size_t at = 0; at < length; at += page) {
      if (numa_of_page(first + at) != static_cast<int>(numa_os_index)) return false;
    }
    return true;
  };
  // First, so that pages to come are allocated there.
  if (set_policy(address, length, numa_os_index, 0) != 0) return false;
  touch(first, length);
  // A move makes all CPUs empty their lists of new pages: 0.3 ms, were there nothing to move.
  return all_there() ||
         (set_policy(address, length, numa_os_index, MPOL_MF_MOVE) == 0 && all_there());
}

int prefer_numa(void* address, std::size_t bytes, std::optional<unsigned> numa_os_index) noexcept {
  return set_policy(address, bytes, numa_os_index, 0);
}

unsigned numa_nodes_allowed() noexcept {
  NumaMask mask{};
  if (!ask_allowed(mask)) return 0;
  unsigned count = 0;
  for (const unsigned long word : mask) count += static_cast<unsigned>(std::popcount(word));
  return count;
}

bool numa_node_allowed(unsigned numa_os_index) noexcept {
  NumaMask mask{};
  if (numa_os_index >= numa_nodes_max || !ask_allowed(mask)) return false;
  return (mask[numa_os_index / word_bits] >> (numa_os_index % word_bits) & 1) != 0;
}

int numa_of_page(const void* address) noexcept {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  auto* page = reinterpret_cast<void*>(number - number % page_size());
  int where = -1;
  // move_pages without destinations only asks, and does not touch the page.
  if (syscall(SYS_move_pages, 0, 1UL, &page, nullptr, &where, 0) != 0) return -1;
  return std::max(where, -1);
}

}  // namespace muster
