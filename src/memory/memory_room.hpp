// SPDX-License-Identifier: BSD-3-Clause
// How much memory can still be had before the kernel starts to kill for it.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

/// Bytes this process could allocate now: what /proc/meminfo calls available plus free swap, and no
/// more than any of its memory control groups (version 1 or 2, every visible ancestor) has left,
/// counting file cache as free. An estimate, without side effects; UINT64_MAX if nothing is known.
/// `root` stands before every path, for tests.
std::uint64_t memory_room(const std::string& root = "/");

}  // namespace muster
