// SPDX-License-Identifier: BSD-3-Clause
// Which heap the memory at an address belongs to, and where a heap's memory is: the memory of
// "remembered blocks". A table of two levels over the address space, a number for each 512 KiB;
// without locks, so that a fork at any moment leaves it usable. Memory is added and never taken
// away: arenas keep theirs.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace muster::allocation {

class RegionMap {
 public:
  using Owner = std::uint16_t;                          ///< 0: nobody
  static constexpr std::size_t granule = 512U * 1024U;  ///< whole pages, everywhere

  constexpr RegionMap() = default;
  RegionMap(const RegionMap&) = delete;
  RegionMap& operator=(const RegionMap&) = delete;

  /// Both ends are multiples of `granule`. False: no memory for the table, or beyond the addresses
  /// that it covers.
  bool add(const void* first, std::size_t bytes, Owner owner) noexcept;

  Owner owner(const void* address) const noexcept {
    const std::uintptr_t number = reinterpret_cast<std::uintptr_t>(address) / granule;
    if (number / leaf_entries >= tops) return 0;
    const Leaf* const leaf = leaves_[number / leaf_entries].load(std::memory_order_acquire);
    return leaf == nullptr ? Owner{0}
                           : (*leaf)[number % leaf_entries].load(std::memory_order_acquire);
  }

  /// Calls visit(std::byte* first, std::size_t bytes, Owner) for each longest run of memory of one
  /// owner that is there now.
  template <class Visit>
  void each_run(Visit visit) const {
    Run run;
    for (std::size_t top = 0; top < tops; ++top) {
      const Leaf* const leaf = leaves_[top].load(std::memory_order_acquire);
      if (leaf == nullptr) continue;
      for (std::size_t entry = 0; entry < leaf_entries; ++entry) {
        const Owner owner = (*leaf)[entry].load(std::memory_order_acquire);
        const std::uintptr_t at = (top * leaf_entries + entry) * granule;
        if (owner == run.owner && at == run.first + run.bytes) {
          run.bytes += granule;
          continue;
        }
        run.report(visit);
        run = {at, granule, owner};
      }
    }
    run.report(visit);
  }

 private:
  static constexpr std::size_t leaf_entries = std::size_t{1} << 14;
  static constexpr std::size_t tops = std::size_t{1} << 15;  // with the above: 48 bits of address
  using Leaf = std::array<std::atomic<Owner>, leaf_entries>;

  struct Run {
    std::uintptr_t first = 0;
    std::size_t bytes = 0;
    Owner owner = 0;
    template <class Visit>
    void report(Visit& visit) const {
      if (owner != 0) visit(reinterpret_cast<std::byte*>(first), bytes, owner);
    }
  };

  Leaf* leaf_at(std::size_t top) noexcept;

  std::array<std::atomic<Leaf*>, tops> leaves_{};
};

}  // namespace muster::allocation
