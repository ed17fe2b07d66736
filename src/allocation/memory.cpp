// SPDX-License-Identifier: BSD-3-Clause
// The C ABI's allocation: memory.h over jemalloc and the policy.
#include "muster/memory.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "allocation/aware.hpp"
#include "allocation/jemalloc.hpp"

using muster::allocation::apart;
using muster::allocation::follow_policy;

void* muster_alloc(size_t bytes) {
  follow_policy();
  return je_malloc(bytes);
}

void* muster_alloc_zeroed(size_t count, size_t bytes) {
  follow_policy();
  return je_calloc(count, bytes);
}

void* muster_alloc_aligned(size_t alignment, size_t bytes) {
  follow_policy();
  return je_aligned_alloc(alignment, bytes);
}

void* muster_realloc(void* block, size_t bytes) {
  follow_policy();
  if (block != nullptr && bytes == 0) {
    muster_free(block);
    return nullptr;
  }
  void* const other = block == nullptr || !apart(block)
                          ? je_realloc(block, bytes)
                          : je_rallocx(block, bytes, MALLOCX_TCACHE_NONE);
  if (other == nullptr) errno = ENOMEM;  // jemalloc does not say so here
  return other;
}

void muster_free(void* block) {
  if (!apart(block)) {
    je_free(block);
  } else if (block != nullptr) {
    je_dallocx(block, MALLOCX_TCACHE_NONE);
  }
}

size_t muster_usable_size(const void* block) {
  return je_malloc_usable_size(const_cast<void*>(block));
}

int muster_memory_numa(const void* block) {
  const auto numa = muster::allocation::numa_of_heap(muster::allocation::regions.owner(block));
  return numa ? static_cast<int>(*numa) : -1;
}

int muster_memory_servers(const unsigned* numa_nodes, unsigned count) {
  if (numa_nodes == nullptr && count != 0) return MUSTER_EINVAL;
  muster::allocation::set_servers({numa_nodes, count});
  return MUSTER_OK;
}

int muster_memory_follow_servers(void) {
  using Changed = void (*)(const unsigned* numa_nodes, unsigned count, void* context);
  using SetObserver = int (*)(Changed changed, void* context);
  const auto set_observer =
      reinterpret_cast<SetObserver>(dlsym(RTLD_DEFAULT, "muster_server_set_observer"));
  if (set_observer == nullptr) return MUSTER_ENOTSUP;
  return set_observer([](const unsigned* numa_nodes, unsigned count,
                         void*) { muster_memory_servers(numa_nodes, count); },
                      nullptr);
}

int muster_memory_get_counters(muster_memory_counters* theirs, size_t size) {
  if (theirs == nullptr) return MUSTER_EINVAL;
  const muster::allocation::Counters now = muster::allocation::counters();
  const auto numa = muster::allocation::numa_of_heap(now.policy.heap);
  muster_memory_counters ours{};
  ours.numa_node = numa ? static_cast<int>(*numa) : -1;
  ours.bindings = now.bindings;
  ours.lifts = now.lifts;
  ours.pages_moved = now.migration.moved;
  ours.pages_already_there = now.migration.already_there;
  ours.pages_not_there_yet = now.migration.not_there_yet;
  ours.pages_refused = now.migration.refused;
  ours.first_refusal = now.migration.first_refusal;
  ours.regions_refused = now.regions_refused;
  ours.first_region_refusal = now.first_refusal;
  ours.bytes = now.bytes;
  ours.bytes_bound = now.bytes_bound;
  ours.threads_adrift = now.threads_adrift;
  std::memset(theirs, 0, size);
  std::memcpy(theirs, &ours, std::min(sizeof ours, size));
  return MUSTER_OK;
}

int muster_memory_explain(char* text, size_t bytes, size_t* needed) try {
  if (text == nullptr && bytes != 0) return MUSTER_EINVAL;
  const std::string whole = muster::allocation::explain();
  if (needed != nullptr) *needed = whole.size() + 1;
  if (text != nullptr && bytes > 0) {
    const size_t length = std::min(whole.size(), bytes - 1);
    std::memcpy(text, whole.data(), length);
    text[length] = '\0';
  }
  return MUSTER_OK;
} catch (const std::bad_alloc&) {
  return MUSTER_ENOMEM;
}
