// SPDX-License-Identifier: BSD-3-Clause
#include "topology/pu_set.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "machine/error.hpp"
#include "machine/format.hpp"
#include "topology/tree.hpp"

namespace muster {

PuSet PuSet::parse(std::string_view text) {
  const auto fail = [&](const std::string& why) {
    throw Error(Status::invalid, format("PU list '{}': {}; write it like 0-3,8", text, why));
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string compact;
  bool after_blank = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (!blank) {
      if (after_blank && is_digit(c) && !compact.empty() && is_digit(compact.back())) {
        fail("blanks separate no numbers, commas do");
      }
      compact += c;
    }
    after_blank = blank;
  }
  PuSet set;
  if (compact.empty() || compact == "none") return set;
  const char* at = compact.data();
  const char* const end = at + compact.size();
  const auto number = [&]() -> unsigned {
    unsigned value = 0;
    const auto [after, error] = std::from_chars(at, end, value);
    if (error == std::errc::invalid_argument) {
      fail(format("a number is missing at character {}", at - compact.data() + 1));
    }
    if (error != std::errc() || value >= kEnd) fail(format("numbers end at {}", kEnd - 1));
    at = after;
    return value;
  };
  while (true) {
    const unsigned low = number();
    unsigned high = low;
    unsigned stride = 1;
    if (at != end && *at == '-') {
      ++at;
      high = number();
      if (high < low) fail(format("range {}-{} runs backwards", low, high));
      if (at != end && *at == ':') {
        ++at;
        stride = number();
        if (stride == 0) fail("a stride is at least 1");
      }
    }
    for (unsigned pu = low; pu <= high; pu += stride) set.add(pu);
    if (at == end) return set;
    if (*at != ',') fail(format("'{}' is not expected", *at));
    ++at;
  }
}

PuSet PuSet::of_words(std::vector<std::uint64_t> words) {
  PuSet set;
  set.words_ = std::move(words);
  set.trim();
  return set;
}

void PuSet::add(unsigned pu) {
  if (pu >= kEnd) throw Error(Status::invalid, format("PU {}: numbers end at {}", pu, kEnd - 1));
  if (pu / 64 >= words_.size()) words_.resize(pu / 64 + 1, 0);
  words_[pu / 64] |= std::uint64_t{1} << (pu % 64);
}

unsigned PuSet::count() const {
  unsigned total = 0;
  for (const std::uint64_t word : words_) total += static_cast<unsigned>(std::popcount(word));
  return total;
}

unsigned PuSet::next(unsigned from) const {
  for (std::size_t w = from / 64; w < words_.size(); ++w) {
    std::uint64_t word = words_[w];
    if (w == from / 64) word &= ~std::uint64_t{0} << (from % 64);
    if (word != 0)
      return static_cast<unsigned>(w * 64) + static_cast<unsigned>(std::countr_zero(word));
  }
  return kEnd;
}

bool PuSet::intersects(const PuSet& other) const {
  for (std::size_t w = 0; w < std::min(words_.size(), other.words_.size()); ++w) {
    if ((words_[w] & other.words_[w]) != 0) return true;
  }
  return false;
}

bool PuSet::is_subset_of(const PuSet& other) const { return (*this - other).empty(); }

PuSet& PuSet::operator|=(const PuSet& other) {
  if (other.words_.size() > words_.size()) words_.resize(other.words_.size(), 0);
  for (std::size_t w = 0; w < other.words_.size(); ++w) words_[w] |= other.words_[w];
  return *this;
}

PuSet& PuSet::operator&=(const PuSet& other) {
  words_.resize(std::min(words_.size(), other.words_.size()));
  for (std::size_t w = 0; w < words_.size(); ++w) words_[w] &= other.words_[w];
  trim();
  return *this;
}

PuSet& PuSet::operator-=(const PuSet& other) {
  for (std::size_t w = 0; w < std::min(words_.size(), other.words_.size()); ++w) {
    words_[w] &= ~other.words_[w];
  }
  trim();
  return *this;
}

void PuSet::trim() {
  while (!words_.empty() && words_.back() == 0) words_.pop_back();
}

std::vector<unsigned> PuSet::to_vector() const {
  std::vector<unsigned> pus;
  for (unsigned pu = first(); pu != kEnd; pu = next(pu + 1)) pus.push_back(pu);
  return pus;
}

std::string PuSet::to_string() const { return empty() ? "none" : format_numbers(to_vector()); }

}  // namespace muster
