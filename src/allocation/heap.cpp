// SPDX-License-Identifier: BSD-3-Clause
#include "allocation/heap.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>

#include "allocation/jemalloc.hpp"
#include "machine/format.hpp"
#include "machine/keep_errno.hpp"
#include "memory/pages.hpp"

namespace muster::allocation {

constinit std::atomic<std::uint64_t> current{Policy{}.word()};
constinit RegionMap regions;
constinit std::atomic<bool> binds{false};
constinit Refusals refusals{};

namespace {

struct Heap {
  extent_hooks_t hooks;  // first: what jemalloc calls the hooks with
  std::array<std::atomic<std::uint16_t>, arenas_max> arenas;  // jemalloc's number plus 1
};
constinit std::array<Heap, heaps_max> heaps{};
constinit std::array<std::atomic<bool>, heaps_max> used{};  // looked through without touching heaps
constinit std::mutex making;

std::byte* map(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

/// `alignment` is a power of two, as jemalloc's are.
std::byte* map_aligned(std::size_t bytes, std::size_t alignment) {
  std::byte* const first = map(bytes);
  const auto past = [&](std::byte* at) {
    return reinterpret_cast<std::uintptr_t>(at) & (alignment - 1);
  };
  if (first == nullptr || past(first) == 0) return first;
  munmap(first, bytes);
  if (bytes > SIZE_MAX - alignment) return nullptr;
  std::byte* const more = map(bytes + alignment);
  if (more == nullptr) return nullptr;
  const std::size_t lead = past(more) == 0 ? 0 : alignment - past(more);
  if (lead != 0) munmap(more, lead);
  munmap(more + lead + bytes, alignment - lead);
  return more + lead;
}

/// The policy may change meanwhile. Whoever changes it exchanges `current` and then looks at the
/// regions: either he finds this one, or what is read here is his.
void place(std::byte* first, std::size_t bytes, HeapNumber heap) {
  std::optional<unsigned> placed;
  std::uint64_t word = current.fetch_add(0, std::memory_order_acq_rel);
  for (std::uint64_t seen = ~word; seen != word;) {
    seen = word;
    const std::optional<unsigned> wanted = Policy::of(word).numa_for(heap);
    if (wanted != placed && binds.load(std::memory_order_relaxed)) {
      refusals.note(prefer_numa(first, bytes, wanted));
      placed = wanted;
    }
    word = current.fetch_add(0, std::memory_order_acq_rel);
  }
}

void* allocate_extent(extent_hooks_t* hooks, void* at, std::size_t bytes, std::size_t alignment,
                      bool* zero, bool* commit, unsigned) {
  constexpr std::size_t granule = RegionMap::granule;
  const KeepErrno keep;
  if (at != nullptr || bytes > SIZE_MAX - granule) return nullptr;
  const std::size_t whole = (bytes + granule - 1) / granule * granule;
  const auto heap = static_cast<HeapNumber>(reinterpret_cast<Heap*>(hooks) - heaps.data());
  std::byte* const first = map_aligned(whole, std::max(alignment, granule));
  if (first == nullptr) return nullptr;
  if (!regions.add(first, whole, heap)) {
    munmap(first, whole);
    return nullptr;
  }
  place(first, whole, heap);
  *zero = true;
  *commit = true;
  return first;
}

bool purge(int advice, void* address, std::size_t offset, std::size_t bytes) {
  const KeepErrno keep;
  return madvise(static_cast<std::byte*>(address) + offset, bytes, advice) != 0;
}
bool purge_lazily(extent_hooks_t*, void* address, std::size_t, std::size_t offset,
                  std::size_t bytes, unsigned) {
  return purge(MADV_FREE, address, offset, bytes);
}
bool purge_now(extent_hooks_t*, void* address, std::size_t, std::size_t offset, std::size_t bytes,
               unsigned) {
  return purge(MADV_DONTNEED, address, offset, bytes);
}

// jemalloc splits and merges extents of one arena only, and they are all alike.
bool split(extent_hooks_t*, void*, std::size_t, std::size_t, std::size_t, bool, unsigned) {
  return false;
}
bool merge(extent_hooks_t*, void*, std::size_t, void*, std::size_t, bool, unsigned) {
  return false;
}

constexpr extent_hooks_t our_hooks = {
    .alloc = allocate_extent,
    // Declined: jemalloc keeps the address range and purges its pages. Unmapping would cut the map
    // of this process into thousands of pieces.
    .dalloc = nullptr,
    .destroy = nullptr,  // arenas live as long as the process
    .commit = nullptr,   // memory is committed by being mapped
    .decommit = nullptr,
    .purge_lazy = purge_lazily,
    .purge_forced = purge_now,
    .split = split,
    .merge = merge,
};

/// jemalloc keeps a list of the large blocks of an arena that was made on request, under a lock: a
/// twentieth of the price of a block of 16 KiB or more. Of its automatic ones it keeps none. So
/// those first, as many as it was told to have (aware.cpp); but none that it has put to use itself,
/// whose memory is not ours.
std::optional<unsigned> automatic_arena(extent_hooks_t* hooks) {
  static constinit unsigned next = 1;  // 0 is for what jemalloc wants itself
  unsigned count = 0;
  std::size_t bytes = sizeof count;
  if (je_mallctl("opt.narenas", &count, &bytes, nullptr, 0) != 0) return std::nullopt;
  while (next < count) {
    const unsigned number = next++;
    std::uint64_t epoch = 1;
    je_mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch);  // have it look what there is
    std::array<char, 40> name{};
    format_to_n(name.data(), name.size() - 1, "arena.{}.initialized", number);
    bool in_use = true;
    bytes = sizeof in_use;
    if (je_mallctl(name.data(), &in_use, &bytes, nullptr, 0) != 0 || in_use) continue;
    name = {};
    format_to_n(name.data(), name.size() - 1, "arena.{}.extent_hooks", number);
    if (je_mallctl(name.data(), nullptr, nullptr, &hooks, sizeof(void*)) == 0) return number;
  }
  return std::nullopt;
}

std::optional<unsigned> arena_on_request(extent_hooks_t* hooks) {
  unsigned number = 0;
  std::size_t bytes = sizeof number;
  if (je_mallctl("arenas.create", &number, &bytes, &hooks, sizeof(void*)) != 0) return std::nullopt;
  return number;
}

}  // namespace

void Refusals::note(int error) noexcept {
  if (error == 0) return;
  regions.fetch_add(1, std::memory_order_relaxed);
  int none = 0;
  first_error.compare_exchange_strong(none, error, std::memory_order_relaxed);
}

std::optional<unsigned> arena(HeapNumber heap, unsigned slot) noexcept {
  std::atomic<std::uint16_t>& known = heaps[heap].arenas[slot];
  std::uint16_t number = known.load(std::memory_order_acquire);
  if (number == 0) {
    const std::lock_guard lock(making);
    number = known.load(std::memory_order_relaxed);
    if (number == 0) {
      extent_hooks_t* hooks = &heaps[heap].hooks;
      if (hooks->alloc == nullptr) {
        extent_hooks_t others = our_hooks;
        others.alloc = nullptr;
        *hooks = others;  // before that one: a fork's child has all of them, or none
        std::atomic_ref(hooks->alloc).store(allocate_extent, std::memory_order_release);
      }
      std::optional<unsigned> made = automatic_arena(hooks);
      if (!made) made = arena_on_request(hooks);
      if (!made) return std::nullopt;
      number = static_cast<std::uint16_t>(*made + 1);
      known.store(number, std::memory_order_release);
      used[heap].store(true, std::memory_order_relaxed);
    }
  }
  return number - 1U;
}

bool heap_used(HeapNumber heap) noexcept { return used[heap].load(std::memory_order_relaxed); }

unsigned arenas_made(HeapNumber heap) noexcept {
  const auto& arenas = heaps[heap].arenas;
  return static_cast<unsigned>(std::count_if(arenas.begin(), arenas.end(), [](const auto& number) {
    return number.load(std::memory_order_acquire) != 0;
  }));
}

void nobody_makes_arenas() noexcept { new (&making) std::mutex; }

}  // namespace muster::allocation
