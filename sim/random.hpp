// SPDX-License-Identifier: BSD-3-Clause
// Random numbers that are the same everywhere: the standard library's distributions and
// std::shuffle differ between implementations.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace muster::sim {

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): one addition and a mix a number, any seed good.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, bound), bound below 2^32: the high half of a product, no division.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }
  /// Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t n = items.size(); n > 1; --n) {
      std::swap(items[n - 1], items[below(static_cast<std::uint32_t>(n))]);
    }
  }

 private:
  std::uint64_t state_;
};

}  // namespace muster::sim
