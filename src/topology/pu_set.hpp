// SPDX-License-Identifier: BSD-3-Clause
// A set of PUs (hardware threads) by the operating system's numbers: what a rank is bound to, what
// a unit of a level covers. Plain data, no hwloc. An empty set used as a binding means "unbound".
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

class PuSet {
 public:
  /// Numbers at or above this are refused (Status::invalid).
  static constexpr unsigned kEnd = 1U << 20;

  PuSet() = default;
  PuSet(std::initializer_list<unsigned> pus) {
    for (const unsigned pu : pus) add(pu);
  }

  /// "0-3,8", "5", "0-30:2" (every second one), "" or "none" for the empty set. Blanks count for
  /// nothing, and separate no numbers. Throws Error(Status::invalid).
  static PuSet parse(std::string_view text);

  void add(unsigned pu);
  bool contains(unsigned pu) const {
    return pu / 64 < words_.size() && (words_[pu / 64] >> (pu % 64) & 1U) != 0;
  }
  bool empty() const { return words_.empty(); }
  unsigned count() const;
  unsigned first() const { return next(0); }  ///< its lowest PU; kEnd if empty
  unsigned next(unsigned from) const;         ///< its lowest PU >= from; kEnd if none

  bool intersects(const PuSet& other) const;
  bool is_subset_of(const PuSet& other) const;
  PuSet& operator|=(const PuSet& other);
  PuSet& operator&=(const PuSet& other);
  PuSet& operator-=(const PuSet& other);
  friend PuSet operator&(PuSet a, const PuSet& b) { return a &= b; }
  friend PuSet operator-(PuSet a, const PuSet& b) { return a -= b; }
  friend bool operator==(const PuSet&, const PuSet&) = default;

  std::vector<unsigned> to_vector() const;
  /// A bit for each, as in the system's masks.
  const std::vector<std::uint64_t>& words() const { return words_; }
  static PuSet of_words(std::vector<std::uint64_t> words);
  std::string to_string() const;  ///< as parse() reads it

 private:
  void trim();
  std::vector<std::uint64_t> words_;  // the last word is never 0, so that == compares sets
};

}  // namespace muster
