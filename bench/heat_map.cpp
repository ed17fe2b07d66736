// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "bench/stats.hpp"

namespace muster::bench {
namespace {

constexpr unsigned columns_max = 79;
constexpr unsigned label_width = 6;
constexpr unsigned number_width = 4;
constexpr unsigned numbers_max = (columns_max - label_width) / number_width;
constexpr unsigned cells_max = (columns_max - label_width) / 2;
constexpr std::string_view shades = ".:-=+*oO%@";
/// Of the 256 of terminals, from dark blue to yellow: told apart in grey and without red.
constexpr std::array<int, shades.size()> backgrounds = {17,  18,  24,  60,  66,
                                                        102, 108, 144, 185, 227};
constexpr std::size_t first_light = 6;  ///< from there on black characters are read better

std::string painted(std::size_t shade, std::string_view text, bool colour) {
  if (!colour) return std::string(text);
  return fmt::format("\x1b[48;5;{};38;5;{}m{}\x1b[0m", backgrounds[shade],
                     shade < first_light ? 15 : 16, text);
}

}  // namespace

std::string heat_map(const sim::PairMatrix& matrix, const std::vector<unsigned>& cpus,
                     const std::vector<unsigned>& order, bool colour) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const double ns : matrix.ns) {
    if (!(ns > 0)) continue;
    low = std::min(low, ns);
    high = std::max(high, ns);
  }
  const double steps = std::max(std::log(high / low), 1e-9) / static_cast<double>(shades.size());
  const auto shade_of = [&](double ns) {
    return std::min(static_cast<std::size_t>(std::log(ns / low) / steps), shades.size() - 1);
  };
  const bool numbers = matrix.size <= numbers_max;
  unsigned side = 1;
  while (!numbers && (matrix.size + side - 1) / side > cells_max) side *= 2;

  std::string text = fmt::format("{:>{}}", "CPU", label_width - 1) + (numbers ? " " : "");
  for (unsigned n = 0; numbers && n < matrix.size; ++n)
    text += fmt::format("{:>{}}", cpus[order[n]], number_width);
  text += "\n";
  for (unsigned top = 0; top < matrix.size; top += side) {
    text += fmt::format("{:>{}} ", cpus[order[top]], label_width - 1);
    for (unsigned left = 0; left < matrix.size; left += side) {
      std::vector<double> values;
      for (unsigned row = top; row < std::min(top + side, matrix.size); ++row) {
        for (unsigned column = left; column < std::min(left + side, matrix.size); ++column) {
          const double ns = matrix.at(order[row], order[column]);
          if (ns > 0) values.push_back(ns);
        }
      }
      const unsigned width = numbers ? number_width : 2;
      if (values.empty()) {
        text += fmt::format("{:>{}}", top == left ? "" : "?", width);
        continue;
      }
      const double ns = median(values);
      const std::size_t shade = shade_of(ns);
      text += painted(
          shade, numbers ? fmt::format("{:>{}.0f}", ns, width) : std::string(width, shades[shade]),
          colour);
    }
    text += "\n";
  }
  if (numbers) return text + "ns, one way\n";
  if (side > 1) text += fmt::format("A cell is the median of {0} x {0} CPUs. ", side);
  text += "ns, one way, from:\n";
  for (std::size_t shade = 0; shade < shades.size(); ++shade) {
    text += painted(shade, std::string(2, shades[shade]), colour) +
            fmt::format("{:<5.0f}", low * std::exp(steps * static_cast<double>(shade)));
  }
  return text + "\n";
}

}  // namespace muster::bench
