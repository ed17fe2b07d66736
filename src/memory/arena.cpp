// SPDX-License-Identifier: BSD-3-Clause
#include "memory/arena.hpp"

#include <iterator>
#include <string>
#include <utility>

#include "machine/error.hpp"

namespace muster {

SubAllocator::SubAllocator(std::size_t size) {
  if (size > 0) free_.emplace(0, size);
}

std::size_t SubAllocator::allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes == 0 || alignment == 0) {
    throw Error(Status::invalid, "an allocation needs at least 1 byte and an alignment of 1");
  }
  for (auto extent = free_.begin(); extent != free_.end(); ++extent) {
    const auto [begin, length] = *extent;
    const std::size_t over = begin % alignment;
    const std::size_t gap = over == 0 ? 0 : alignment - over;
    if (gap >= length || length - gap < bytes) continue;
    const std::size_t offset = begin + gap;
    std::map<std::size_t, std::size_t> taken{{offset, bytes}};
    std::map<std::size_t, std::size_t> left;
    if (length - gap > bytes) left.emplace(offset + bytes, length - gap - bytes);
    // From here on there is all the memory that it takes.
    if (gap > 0) {
      extent->second = gap;
    } else {
      free_.erase(extent);
    }
    free_.merge(left);
    used_.merge(taken);
    return offset;
  }
  return npos;
}

void SubAllocator::free(std::size_t offset) {
  const auto taken = used_.find(offset);
  if (taken == used_.end()) {
    throw Error(Status::invalid, "nothing is allocated at offset " + std::to_string(offset) +
                                     ": was it given back before?");
  }
  auto extent = used_.extract(taken);  // whose memory serves on: this cannot fail
  std::size_t& begin = extent.key();
  std::size_t& bytes = extent.mapped();
  const auto after = free_.lower_bound(begin);
  const auto before = after == free_.begin() ? free_.end() : std::prev(after);
  if (before != free_.end() && before->first + before->second == begin) {
    begin = before->first;
    bytes += before->second;
    free_.erase(before);
  }
  if (after != free_.end() && after->first == begin + bytes) {
    bytes += after->second;
    free_.erase(after);
  }
  free_.insert(std::move(extent));
}

}  // namespace muster
