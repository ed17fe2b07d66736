// SPDX-License-Identifier: BSD-3-Clause
// Which participants have a valid copy of each line now. Most lines have one or two: these are
// listed; a line that ever had more than four gets a set of bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::sim {

class Copies {
 public:
  Copies(std::size_t lines, unsigned participants)
      : lines_(lines), words_((participants + 63) / 64) {}

  bool has(std::size_t line, std::uint32_t participant) const {
    const Few& few = lines_[line];
    if (few.count > room)
      return (bits_[few.bits + participant / 64] >> (participant % 64) & 1) != 0;
    for (unsigned n = 0; n < few.count; ++n) {
      if (few.who[n] == participant) return true;
    }
    return false;
  }

  void add(std::size_t line, std::uint32_t participant) {
    if (has(line, participant)) return;
    Few& few = lines_[line];
    if (few.count < room) {
      few.who[few.count++] = participant;
      return;
    }
    if (few.count == room) {
      if (few.bits == none) {
        few.bits = static_cast<std::uint32_t>(bits_.size());
        bits_.resize(bits_.size() + words_, 0);
      } else {
        std::fill_n(bits_.begin() + few.bits, words_, 0);
      }
      for (const std::uint32_t other : few.who) set(few, other);
      ++few.count;
    }
    set(few, participant);
  }

  /// Takes it from all others.
  void only(std::size_t line, std::uint32_t participant) {
    lines_[line].count = 1;
    lines_[line].who[0] = participant;
  }

 private:
  static constexpr unsigned room = 4;
  static constexpr std::uint32_t none = ~0U;
  struct Few {
    std::uint32_t who[room] = {};
    std::uint32_t count = 0;  ///< above `room`: the bits count
    std::uint32_t bits = none;
  };

  void set(const Few& few, std::uint32_t participant) {
    bits_[few.bits + participant / 64] |= std::uint64_t{1} << (participant % 64);
  }

  std::vector<Few> lines_;
  std::vector<std::uint64_t> bits_;
  std::size_t words_;
};

}  // namespace muster::sim
