// SPDX-License-Identifier: BSD-3-Clause
// A lock by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "delegation/any_lock.hpp"

namespace muster::delegation {

/// The kind that processes may share.
inline constexpr const char* shared_kind = "robust";

struct LockOptions {
  std::string kind = "auto";
  std::shared_ptr<Station> station;  ///< whose server executes; null: the default one
  void* shared_memory = nullptr;     ///< robust: of shared_lock_bytes()
  bool creates = true;               ///< the shared lock; else it attaches
  std::int64_t turn_ns = 0;          ///< rcl, auto: as locks::Visit; 0: its usual one
  unsigned turn_sections = 0;        ///< combining kinds: locks::Shape::limit; 0: its usual one
};

/// Throws Error: unknown_name, unsupported (shared memory, or a turn, for a kind that cannot),
/// no_memory, invalid (shared memory that is not aligned, or to attach to and without a lock).
std::unique_ptr<AnyLock> make_lock(const LockOptions& options);

/// Bytes that a shared lock needs, aligned to a line.
std::size_t shared_lock_bytes();

}  // namespace muster::delegation
