// SPDX-License-Identifier: BSD-3-Clause
// The downhill simplex: the least value of a function of a few variables, without derivatives.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace muster::sim {

using Point = std::vector<double>;

struct Minimum {
  Point at;
  double value = 0;
  unsigned evaluations = 0;
};

struct SimplexOptions {
  Point start;
  Point low;  ///< the search stays inside
  Point high;
  double step = 0.5;    ///< size of the first simplex
  double spread = 1.4;  ///< further starts are this far from the first at most
  unsigned evaluations = 400;
  unsigned starts = 1;
  std::uint64_t seed = 1;
};

/// Nelder and Mead, Computer Journal 7(4), 1965, with their coefficients, clamped to the bounds;
/// the evaluations are shared among the starts. Deterministic if `function` is.
Minimum minimise(const std::function<double(const Point&)>& function,
                 const SimplexOptions& options);

}  // namespace muster::sim
