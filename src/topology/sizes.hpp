// SPDX-License-Identifier: BSD-3-Clause
// What hwloc tells of caches and memory besides whom they serve: how large, how far apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

/// Caches of one size on one level.
struct CacheSize {
  std::string level;  ///< "L1", "L2", "L3"; data or unified
  std::uint64_t bytes = 0;
  unsigned count = 0;
};

struct Sizes {
  std::vector<CacheSize> caches;    ///< the smallest level first; those of unknown size left out
  std::vector<unsigned> nodes;      ///< NUMA nodes by the operating system's numbers
  std::vector<unsigned> distances;  ///< nodes x nodes, as the firmware has them (10: one's own
                                    ///< memory); empty: not told, or one node only
};

/// Of this machine, or of one kept in hwloc's XML file; a synthetic description (or a file of one)
/// has no sizes. Throws as Topology::from_file() does if the file cannot be read.
Sizes read_sizes(const std::string& spec);

}  // namespace muster
