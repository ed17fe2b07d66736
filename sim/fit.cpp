// SPDX-License-Identifier: BSD-3-Clause
#include "sim/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/random.hpp"

namespace muster::sim {
namespace {

using Point = std::vector<double>;  ///< logarithms of the free values

struct Tried {
  Point at;
  double rms;
};

class Search {
 public:
  Search(const MachineModel& machine, const std::vector<Measurement>& measured,
         const FitOptions& options)
      : machine_(machine), measured_(measured), options_(options), random_(options.seed) {
    for (const std::string& key : options.free) {
      const double value = machine.value(key);
      double min = 0.1;
      double max = 1e5;
      if (!key.starts_with("latency-")) {
        min = parameter_info(key).min;
        max = parameter_info(key).max;
      }
      low_.push_back(std::log(std::max(min, 0.05)));
      high_.push_back(std::log(max));
      start_.push_back(std::log(std::max(value, 0.05)));
    }
  }

  void run() {
    const unsigned budget = options_.evaluations / std::max(1U, options_.starts);
    for (unsigned n = 0; n < std::max(1U, options_.starts); ++n) {
      Point from = start_;
      if (n > 0) {
        for (double& x : from) x += std::log(4.0) * (2 * random_.unit() - 1);
      }
      descend(clamp(from), static_cast<unsigned>(tried_.size()) + budget);
    }
  }

  const Tried& best() const {
    return *std::min_element(tried_.begin(), tried_.end(),
                             [](const Tried& a, const Tried& b) { return a.rms < b.rms; });
  }
  const std::vector<Tried>& tried() const { return tried_; }

  MachineModel machine_at(const Point& point) const {
    MachineModel machine = machine_;
    for (std::size_t n = 0; n < point.size(); ++n) {
      machine.set(options_.free[n], std::exp(point[n]), "");
    }
    return machine;
  }

  std::vector<double> modelled_us(const Point& point) const {
    const MachineModel machine = machine_at(point);
    std::vector<double> result(measured_.size());
    run_parallel(measured_.size(), [&](std::size_t n, StackPool& pool) {
      result[n] = latency_us_of(machine, measured_[n].query, options_.effort, options_.seed, pool);
    });
    return result;
  }

 private:
  Point clamp(Point point) const {
    for (std::size_t n = 0; n < point.size(); ++n) {
      point[n] = std::clamp(point[n], low_[n], high_[n]);
    }
    return point;
  }

  double rms(const Point& point) {
    double sum = 0;
    for (const double ratio : log_ratios(modelled_us(point), measured_)) sum += ratio * ratio;
    const double value = std::sqrt(sum / static_cast<double>(measured_.size()));
    tried_.push_back({point, value});
    if (options_.progress && tried_.size() % 16 == 0) {
      options_.progress(static_cast<unsigned>(tried_.size()), best().rms);
    }
    return value;
  }

  /// Nelder and Mead, Computer Journal 7(4), 1965, with their coefficients.
  void descend(const Point& from, unsigned until) {
    const std::size_t n = from.size();
    std::vector<Tried> simplex;
    const auto at = [&](const Point& point) {
      const Point inside = clamp(point);
      return Tried{inside, rms(inside)};
    };
    simplex.push_back(at(from));
    for (std::size_t i = 0; i < n; ++i) {
      Point corner = from;
      corner[i] += corner[i] + 0.5 < high_[i] ? 0.5 : -0.5;
      simplex.push_back(at(corner));
    }
    while (tried_.size() < until) {
      std::sort(simplex.begin(), simplex.end(),
                [](const Tried& a, const Tried& b) { return a.rms < b.rms; });
      Point centre(n, 0.0);
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < n; ++k) {
          centre[k] += simplex[i].at[k] / static_cast<double>(n);
        }
      }
      const auto along = [&](double factor) {
        Point point(n);
        for (std::size_t k = 0; k < n; ++k) {
          point[k] = centre[k] + factor * (simplex[n].at[k] - centre[k]);
        }
        return at(point);
      };
      const Tried reflected = along(-1);
      if (reflected.rms < simplex[0].rms) {
        const Tried expanded = along(-2);
        simplex[n] = expanded.rms < reflected.rms ? expanded : reflected;
      } else if (reflected.rms < simplex[n - 1].rms) {
        simplex[n] = reflected;
      } else {
        const Tried contracted = along(reflected.rms < simplex[n].rms ? -0.5 : 0.5);
        if (contracted.rms < std::min(reflected.rms, simplex[n].rms)) {
          simplex[n] = contracted;
        } else {
          for (std::size_t i = 1; i <= n; ++i) {
            Point point(n);
            for (std::size_t k = 0; k < n; ++k) {
              point[k] = (simplex[i].at[k] + simplex[0].at[k]) / 2;
            }
            simplex[i] = at(point);
          }
        }
      }
    }
  }

  const MachineModel& machine_;
  const std::vector<Measurement>& measured_;
  const FitOptions& options_;
  Random random_;
  Point low_;
  Point high_;
  Point start_;
  std::vector<Tried> tried_;
};

/// Which values nobody measured, and which are not fitted either: drawn within their margins.
Sample draw_uncertain(const MachineModel& machine, const FitOptions& options, Random& random) {
  Sample sample;
  for (const auto& [key, relative] : machine.uncertainty) {
    const double factor = std::pow(1 + relative, 2 * random.unit() - 1);
    if (std::find(options.free.begin(), options.free.end(), key) == options.free.end()) {
      sample.emplace_back(key, machine.value(key) * factor);
    }
  }
  return sample;
}

void check_count(std::size_t measurements, std::size_t parameters) {
  if (parameters < measurements) return;
  throw Error(Status::invalid, fmt::format("{} measurements cannot tell {} parameters: free fewer",
                                           measurements, parameters));
}

/// What shares flags first, and then the cost of a message alone.
FitResult fit_in_turn(const MachineModel& machine, const std::vector<Measurement>& measured,
                      const std::vector<Measurement>& shared,
                      const std::vector<Measurement>& messages, const FitOptions& options) {
  FitResult result = fit(machine, shared, options);
  FitOptions message = options;
  message.free = {"message"};
  message.evaluations = 40;
  message.starts = 1;
  message.samples = 0;
  const FitResult second = fit(result.machine, messages, message);
  result.machine.set("message", second.machine.parameters.message_ns,
                     second.machine.provenance.at("message"));
  result.evaluations += second.evaluations;
  std::vector<double> modelled;
  std::size_t flags = 0;
  std::size_t sent = 0;
  for (const Measurement& m : measured) {
    modelled.push_back(m.query.algorithm.starts_with("base-") ? second.modelled_us[sent++]
                                                              : result.modelled_us[flags++]);
  }
  result.modelled_us = std::move(modelled);
  result.median_error = median(relative_errors(result.modelled_us, measured));
  double sum = 0;
  for (const double ratio : log_ratios(result.modelled_us, measured)) sum += ratio * ratio;
  result.rms = std::sqrt(sum / static_cast<double>(measured.size()));
  return result;
}

}  // namespace

FitResult fit(const MachineModel& machine, const std::vector<Measurement>& measured,
              const FitOptions& options) {
  if (options.free.empty()) throw Error(Status::invalid, "no free parameters");
  std::vector<Measurement> shared;
  std::vector<Measurement> messages;
  for (const Measurement& m : measured) {
    (m.query.algorithm.starts_with("base-") ? messages : shared).push_back(m);
  }
  const bool message_is_free =
      std::find(options.free.begin(), options.free.end(), "message") != options.free.end();
  if (!shared.empty() && !messages.empty() && !message_is_free) {
    return fit_in_turn(machine, measured, shared, messages, options);
  }
  check_count(measured.size(), options.free.size());
  Search search(machine, measured, options);
  search.run();
  FitResult result;
  result.machine = search.machine_at(search.best().at);
  result.modelled_us = search.modelled_us(search.best().at);
  result.rms = search.best().rms;
  result.median_error = median(relative_errors(result.modelled_us, measured));
  result.evaluations = static_cast<unsigned>(search.tried().size());

  const std::string why =
      fmt::format("fitted: to {} measured latencies, with {} others; rms of the log ratios {:.3f}",
                  measured.size(), options.free.size() - 1, result.rms);
  for (const std::string& key : options.free) result.machine.provenance[key] = why;
  result.machine.error = 1.28 * result.rms;
  result.machine.provenance["error"] = "fitted: 1.28 rms of the log ratios, four cases of five";
  result.machine.samples.clear();
  // Each sample is the machine fitted anew with other values for what is not known: settings that
  // explain the measurements nearly as well, and may differ in what they predict.
  Random random(options.seed);
  for (unsigned n = 0; n < options.samples; ++n) {
    Sample sample = draw_uncertain(machine, options, random);
    MachineModel drawn = result.machine;
    for (const auto& [key, value] : sample) drawn.set(key, value, "");
    FitOptions again = options;
    again.seed = options.seed + 1 + n;
    again.starts = 1;
    again.evaluations = options.sample_evaluations;
    Search near(drawn, measured, again);
    near.run();
    result.evaluations += static_cast<unsigned>(near.tried().size());
    if (options.progress) options.progress(result.evaluations, near.best().rms);
    if (near.best().rms > result.rms * 1.5 + 0.02) continue;
    for (std::size_t k = 0; k < options.free.size(); ++k) {
      sample.emplace_back(options.free[k], std::exp(near.best().at[k]));
    }
    result.machine.samples.push_back(std::move(sample));
  }
  for (const std::string& key : options.free) result.machine.uncertainty.erase(key);
  return result;
}

}  // namespace muster::sim
