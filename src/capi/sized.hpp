// SPDX-License-Identifier: BSD-3-Clause
// Structs whose size the caller states, by its header: that may be older than this library, or
// newer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "machine/error.hpp"

namespace muster {

/// The caller's options with this library's members. What an older header lacks is as `init` sets
/// it; what only a newer one has must be 0, else this library would ignore it in silence. `first`:
/// the struct's size in the first version. Throws Error.
template <class Options>
Options complete(const Options& theirs, std::size_t first,
                 void (*init)(Options* options, std::size_t size)) {
  constexpr std::size_t ours = sizeof(Options);
  constexpr std::size_t sane = std::size_t{1} << 16;
  if (theirs.size < first || theirs.size > sane)
    throw Error(Status::invalid, "the options were not initialised: call their _init() first");
  const auto* const bytes = reinterpret_cast<const std::byte*>(&theirs);
  if (std::any_of(bytes + std::min(ours, theirs.size), bytes + theirs.size,
                  [](std::byte byte) { return byte != std::byte{0}; })) {
    throw Error(Status::invalid,
                "an option is set that this libmuster lacks: it is older than the header");
  }
  Options all;
  init(&all, ours);
  std::memcpy(&all, &theirs, std::min(ours, theirs.size));
  all.size = ours;
  return all;
}

/// As much as the caller has a place for; 0 where it has place for more.
template <class Struct>
void give(const Struct& ours, Struct* theirs, std::size_t size) {
  std::memset(static_cast<void*>(theirs), 0, size);
  std::memcpy(static_cast<void*>(theirs), &ours, std::min(sizeof ours, size));
}

}  // namespace muster
