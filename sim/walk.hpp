// SPDX-License-Identifier: BSD-3-Clause
// How the papers' lock benchmark walks its array [P17, PS18]: the same text on hardware
// (`muster bench lock`) and in the model (`muster sim lock`).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "machine/error.hpp"
#include "sim/split_mix.hpp"

namespace muster {

enum class Pattern { sequential, strided, random };

inline constexpr Pattern all_patterns[] = {Pattern::sequential, Pattern::strided, Pattern::random};

inline std::string_view pattern_name(Pattern pattern) {
  constexpr std::string_view names[] = {"sequential", "strided", "random"};
  return names[static_cast<int>(pattern)];
}

inline std::vector<std::string> pattern_names() {
  std::vector<std::string> names;
  for (const Pattern pattern : all_patterns) names.emplace_back(pattern_name(pattern));
  return names;
}

/// Throws Error(unknown_name), listing the names.
inline Pattern parse_pattern(std::string_view name) {
  for (const Pattern pattern : all_patterns) {
    if (name == pattern_name(pattern)) return pattern;
  }
  throw Error(Status::unknown_name,
              "no pattern \"" + std::string(name) + "\"; there are: sequential, strided, random");
}

/// How an index goes on, as each thread's own. Fewer than 2^32 words.
class Walk {
 public:
  Walk(Pattern pattern, std::uint64_t words, std::uint64_t stride, std::uint64_t seed)
      : pattern_(pattern), words_(words), stride_(stride % words), random_(seed) {
    at_ = random_.next() % words;
  }
  std::uint64_t next() noexcept {
    if (pattern_ == Pattern::random) {
      at_ = (random_.next() >> 32) * words_ >> 32;
    } else {
      at_ += pattern_ == Pattern::sequential ? 1 : stride_;
      if (at_ >= words_) at_ -= words_;
    }
    return at_;
  }

 private:
  Pattern pattern_;
  std::uint64_t words_;
  std::uint64_t stride_;
  SplitMix64 random_;
  std::uint64_t at_ = 0;
};

}  // namespace muster
