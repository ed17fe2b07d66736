// SPDX-License-Identifier: BSD-3-Clause
#include "allocation/region_map.hpp"

#include <sys/mman.h>

namespace muster::allocation {

RegionMap::Leaf* RegionMap::leaf_at(std::size_t top) noexcept {
  Leaf* leaf = leaves_[top].load(std::memory_order_acquire);
  if (leaf != nullptr) return leaf;
  // Fresh memory is zero: nobody's.
  void* const fresh =
      mmap(nullptr, sizeof(Leaf), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return nullptr;
  if (leaves_[top].compare_exchange_strong(leaf, static_cast<Leaf*>(fresh),
                                           std::memory_order_acq_rel, std::memory_order_acquire)) {
    return static_cast<Leaf*>(fresh);
  }
  munmap(fresh, sizeof(Leaf));
  return leaf;
}

bool RegionMap::add(const void* first, std::size_t bytes, Owner owner) noexcept {
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(first) / granule;
  const std::uintptr_t end = begin + bytes / granule;
  if (end > tops * leaf_entries) return false;
  for (std::uintptr_t top = begin / leaf_entries; top <= (end - 1) / leaf_entries; ++top) {
    if (leaf_at(top) == nullptr) return false;
  }
  for (std::uintptr_t number = begin; number < end; ++number) {
    Leaf& leaf = *leaves_[number / leaf_entries].load(std::memory_order_acquire);
    leaf[number % leaf_entries].store(owner, std::memory_order_release);
  }
  return true;
}

}  // namespace muster::allocation
