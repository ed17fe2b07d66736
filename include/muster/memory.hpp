// SPDX-License-Identifier: BSD-3-Clause
// Memory where the servers are, for C++20: a thin face over memory.h.
//
//   muster::follow_servers();
//   std::vector<int, muster::allocator<int>> data(1000);
//   std::pmr::map<int, int> table(muster::servers_memory());
#pragma once

#if __cplusplus <= 201703L
#error "muster/memory.hpp is C++20: compile with -std=c++20 or later (muster.hpp is C++17)"
#else

#include <cstddef>
#include <limits>
#include <memory_resource>
#include <new>
#include <span>
#include <string>

#include "muster/memory.h"

namespace muster {

namespace detail {

/// What muster_alloc() aligns to by itself, if the block is that large.
inline constexpr std::size_t common_alignment = alignof(std::max_align_t);

inline void* allocate(std::size_t bytes, std::size_t alignment) {
  void* const block = alignment <= common_alignment && alignment <= bytes
                          ? muster_alloc(bytes)
                          : muster_alloc_aligned(alignment, bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace detail

/// For containers. All are equal: any frees what any has allocated.
template <class T>
class allocator {
 public:
  using value_type = T;

  allocator() = default;
  template <class U>
  allocator(const allocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor): as std's

  T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
      throw std::bad_array_new_length();
    }
    return static_cast<T*>(detail::allocate(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* block, std::size_t) noexcept { muster_free(block); }

  template <class U>
  bool operator==(const allocator<U>&) const noexcept {
    return true;
  }
};

/// The same for std::pmr. Never destroyed: threads and static objects may use it to the last.
inline std::pmr::memory_resource* servers_memory() noexcept {
  class resource final : public std::pmr::memory_resource {
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
      return detail::allocate(bytes, alignment);
    }
    void do_deallocate(void* block, std::size_t, std::size_t) override { muster_free(block); }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
      return dynamic_cast<const resource*>(&other) != nullptr;
    }
  };
  alignas(resource) static std::byte place[sizeof(resource)];
  static resource* const only = ::new (static_cast<void*>(place)) resource;
  return only;
}

/// muster_memory_follow_servers(). False: this process has no libmuster, or it would not.
inline bool follow_servers() noexcept { return muster_memory_follow_servers() == MUSTER_OK; }

inline void set_servers(std::span<const unsigned> numa_nodes) noexcept {
  muster_memory_servers(numa_nodes.data(), static_cast<unsigned>(numa_nodes.size()));
}

inline muster_memory_counters memory_counters() noexcept {
  muster_memory_counters counters;
  muster_memory_get_counters(&counters, sizeof counters);
  return counters;
}

inline std::string explain_memory() {
  std::size_t needed = 0;
  if (muster_memory_explain(nullptr, 0, &needed) != MUSTER_OK) throw std::bad_alloc();
  std::string text(needed, '\0');
  if (muster_memory_explain(text.data(), text.size(), nullptr) != MUSTER_OK) throw std::bad_alloc();
  text.resize(text.find('\0'));
  return text;
}

}  // namespace muster

#endif
