// SPDX-License-Identifier: BSD-3-Clause
#include "sim/simplex.hpp"

#include <algorithm>

#include "sim/random.hpp"

namespace muster::sim {
namespace {

struct Corner {
  Point at;
  double value;
};

class Descent {
 public:
  Descent(const std::function<double(const Point&)>& function, const SimplexOptions& options)
      : function_(function), options_(options) {}

  void from(const Point& start, unsigned until) {
    const std::size_t n = start.size();
    std::vector<Corner> simplex{look(start)};
    for (std::size_t i = 0; i < n; ++i) {
      Point corner = simplex.front().at;
      corner[i] += corner[i] + options_.step < options_.high[i] ? options_.step : -options_.step;
      simplex.push_back(look(corner));
    }
    while (best_.evaluations < until) turn(simplex);
  }

  const Minimum& best() const { return best_; }

 private:
  Corner look(Point point) {
    for (std::size_t k = 0; k < point.size(); ++k) {
      point[k] = std::clamp(point[k], options_.low[k], options_.high[k]);
    }
    const double value = function_(point);
    ++best_.evaluations;
    if (best_.at.empty() || value < best_.value) {
      best_.at = point;
      best_.value = value;
    }
    return {std::move(point), value};
  }

  /// Reflects, expands or contracts the worst corner, or shrinks all towards the best.
  void turn(std::vector<Corner>& simplex) {
    const std::size_t n = simplex.size() - 1;
    std::sort(simplex.begin(), simplex.end(),
              [](const Corner& a, const Corner& b) { return a.value < b.value; });
    Point centre(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < n; ++k) centre[k] += simplex[i].at[k] / static_cast<double>(n);
    }
    const auto along = [&](double factor) {
      Point point(n);
      for (std::size_t k = 0; k < n; ++k) {
        point[k] = centre[k] + factor * (simplex[n].at[k] - centre[k]);
      }
      return look(std::move(point));
    };
    Corner reflected = along(-1);
    if (reflected.value < simplex[0].value) {
      Corner expanded = along(-2);
      simplex[n] = expanded.value < reflected.value ? std::move(expanded) : std::move(reflected);
      return;
    }
    if (n > 1 && reflected.value < simplex[n - 1].value) {
      simplex[n] = std::move(reflected);
      return;
    }
    Corner contracted = along(reflected.value < simplex[n].value ? -0.5 : 0.5);
    if (contracted.value < std::min(reflected.value, simplex[n].value)) {
      simplex[n] = std::move(contracted);
      return;
    }
    for (std::size_t i = 1; i <= n; ++i) {
      Point point(n);
      for (std::size_t k = 0; k < n; ++k) point[k] = (simplex[i].at[k] + simplex[0].at[k]) / 2;
      simplex[i] = look(std::move(point));
    }
  }

  const std::function<double(const Point&)>& function_;
  const SimplexOptions& options_;
  Minimum best_;
};

}  // namespace

Minimum minimise(const std::function<double(const Point&)>& function,
                 const SimplexOptions& options) {
  Descent descent(function, options);
  Random random(options.seed);
  const unsigned starts = std::max(1U, options.starts);
  for (unsigned n = 0; n < starts; ++n) {
    Point from = options.start;
    if (n > 0) {
      for (double& x : from) x += options.spread * (2 * random.unit() - 1);
    }
    descent.from(from, descent.best().evaluations + options.evaluations / starts);
  }
  return descent.best();
}

Minimum minimise_on_line(const std::function<double(const Point&)>& function, double low,
                         double high, unsigned evaluations) {
  Minimum best;
  const auto look = [&](double x) {
    const double value = function({x});
    ++best.evaluations;
    if (best.at.empty() || value < best.value) {
      best.at = {x};
      best.value = value;
    }
    return value;
  };
  const unsigned places = std::max(3U, evaluations / 2);
  const double step = (high - low) / (places - 1);
  for (unsigned n = 0; n < places; ++n) look(n + 1 < places ? low + n * step : high);
  const double golden = 0.6180339887498949;
  double left = std::max(low, best.at[0] - step);
  double right = std::min(high, best.at[0] + step);
  double inner[] = {right - golden * (right - left), left + golden * (right - left)};
  double value[] = {look(inner[0]), look(inner[1])};
  while (best.evaluations < evaluations) {
    if (value[0] <= value[1]) {
      right = inner[1];
      inner[1] = inner[0];
      value[1] = value[0];
      inner[0] = right - golden * (right - left);
      value[0] = look(inner[0]);
    } else {
      left = inner[0];
      inner[0] = inner[1];
      value[0] = value[1];
      inner[1] = left + golden * (right - left);
      value[1] = look(inner[1]);
    }
  }
  return best;
}

}  // namespace muster::sim
