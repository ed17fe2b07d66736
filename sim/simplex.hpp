// SPDX-License-Identifier: BSD-3-Clause
// The least value of a function of a few variables, or of one, without derivatives.
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

/// Of one variable: looks at evenly spaced places, then narrows down to the best one's surroundings
/// by the golden section. Depends on no start.
Minimum minimise_on_line(const std::function<double(const Point&)>& function, double low,
                         double high, unsigned evaluations);

}  // namespace muster::sim
