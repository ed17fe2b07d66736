// SPDX-License-Identifier: BSD-3-Clause
// Fibres: a participant's own stack, entered and left by a few register moves and no system call.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>
#include <vector>

namespace muster::sim {

/// Stacks of one size with an unreachable page below each, kept for the next run. One thread's.
class StackPool {
 public:
  static constexpr std::size_t stack_bytes = 64 * 1024;  ///< rounded up to whole pages

  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  /// Boost.Context's allocator interface. Throws Error(no_memory).
  boost::context::stack_context allocate();
  void deallocate(boost::context::stack_context& stack) noexcept;

 private:
  struct Mapping {
    void* base;
    std::size_t bytes;
  };
  std::vector<Mapping> mappings_;
  std::vector<boost::context::stack_context> free_;
};

/// One fibre. `body` begins at the first resume() and must end before the fibre is destroyed.
class Fibre {
 public:
  Fibre(StackPool& pool, std::function<void()> body);

  bool ended() const { return !inside_; }
  /// From outside: runs the body until it calls leave() or ends.
  void resume() { inside_ = std::move(inside_).resume(); }
  /// From inside: back to whoever called resume().
  void leave() { outside_ = std::move(outside_).resume(); }

 private:
  boost::context::fiber inside_;
  boost::context::fiber outside_;
  std::function<void()> body_;
};

}  // namespace muster::sim
