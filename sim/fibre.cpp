// SPDX-License-Identifier: BSD-3-Clause
#include "sim/fibre.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "machine/error.hpp"

namespace muster::sim {
namespace {

/// What Boost.Context copies around: the pool itself stays where it is.
struct PoolHandle {
  StackPool* pool;
  boost::context::stack_context allocate() { return pool->allocate(); }
  void deallocate(boost::context::stack_context& stack) noexcept { pool->deallocate(stack); }
};

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

StackPool::~StackPool() {
  for (const Mapping& mapping : mappings_) munmap(mapping.base, mapping.bytes);
}

boost::context::stack_context StackPool::allocate() {
  if (free_.empty()) {
    const std::size_t page = page_bytes();
    const std::size_t usable = (stack_bytes + page - 1) / page * page;
    constexpr std::size_t stacks = 32;
    const std::size_t bytes = stacks * (usable + page);
    void* base =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
      throw Error(Status::no_memory,
                  "no address space for the stacks of the modelled participants");
    }
    mappings_.push_back({base, bytes});
    auto* at = static_cast<std::byte*>(base);
    for (std::size_t n = 0; n < stacks; ++n, at += usable + page) {
      if (mprotect(at + page, usable, PROT_READ | PROT_WRITE) != 0) {
        throw Error(Status::no_memory, "no memory for the stacks of the modelled participants");
      }
      // Stacks grow down. Each begins some lines below the last one's offset in its page: if all
      // began at the same, the few lines in use of each would compete for the same sets of the
      // host's cache.
      const std::size_t colour = mappings_.size() * stacks + n;
      const std::size_t unused = colour * 5 * 64 % 4096;
      boost::context::stack_context stack;
      stack.size = usable - unused;
      stack.sp = at + page + stack.size;
      free_.push_back(stack);
    }
  }
  const boost::context::stack_context stack = free_.back();
  free_.pop_back();
  return stack;
}

void StackPool::deallocate(boost::context::stack_context& stack) noexcept {
  free_.push_back(stack);  // has room: it was popped from there
}

Fibre::Fibre(StackPool& pool, std::function<void()> body) : body_(std::move(body)) {
  inside_ = boost::context::fiber(std::allocator_arg, PoolHandle{&pool},
                                  [this](boost::context::fiber&& caller) {
                                    outside_ = std::move(caller);
                                    body_();
                                    return std::move(outside_);
                                  });
}

}  // namespace muster::sim
