// SPDX-License-Identifier: BSD-3-Clause
#include "sim/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/random.hpp"
#include "sim/simplex.hpp"

namespace muster::sim {
namespace {

/// The measurements as a function of the logarithms of the free values.
class Objective {
 public:
  Objective(const MachineModel& machine, const std::vector<Measurement>& measured,
            const FitOptions& options)
      : machine_(machine), measured_(measured), options_(options) {}

  Minimum search() {
    SimplexOptions how;
    for (const std::string& key : options_.free) {
      double min = 0.1;
      double max = 1e5;
      if (!key.starts_with("latency-")) {
        min = parameter_info(key).min;
        max = parameter_info(key).max;
      }
      how.low.push_back(std::log(std::max(min, 0.05)));
      how.high.push_back(std::log(max));
      how.start.push_back(std::log(std::max(machine_.value(key), 0.05)));
    }
    how.evaluations = options_.evaluations;
    how.starts = options_.starts;
    how.seed = options_.seed;
    double best = INFINITY;
    unsigned evaluations = 0;
    const auto rms_at = [&](const Point& point) {
      const double rms = rms_of(modelled_us(point), measured_);
      best = std::min(best, rms);
      if (++evaluations % 16 == 0 && options_.progress) options_.progress(evaluations, best);
      return rms;
    };
    if (options_.free.size() > 1) return minimise(rms_at, how);
    return minimise_on_line(rms_at, how.low.front(), how.high.front(), options_.evaluations);
  }

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
  const MachineModel& machine_;
  const std::vector<Measurement>& measured_;
  const FitOptions& options_;
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

/// Four cases of five, if the logarithms err normally; each fitted parameter has used up one
/// measurement.
double likely_error(double rms, std::size_t measurements, std::size_t parameters) {
  const auto left = static_cast<double>(measurements - parameters);
  return 1.28 * rms * std::sqrt(static_cast<double>(measurements) / left);
}
constexpr const char* error_source =
    "fitted: 1.28 rms of the log ratios with what the fitted parameters used up, four cases of "
    "five";

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
  message.samples = 0;
  const FitResult second = fit(result.machine, messages, message);
  result.fitted.emplace_back("message");
  result.machine.set("message", second.machine.parameters.message_ns,
                     second.machine.provenance.at("message"));
  result.machine.message_error = second.machine.error;
  result.machine.provenance["message-error"] = error_source;
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
  result.rms = rms_of(result.modelled_us, measured);
  return result;
}

}  // namespace

FitResult fit(const MachineModel& machine, const std::vector<Measurement>& measured,
              const FitOptions& options) {
  if (options.free.empty()) throw Error(Status::invalid, "no free parameters");
  for (auto key = options.free.begin(); key != options.free.end(); ++key) {
    static_cast<void>(machine.value(*key));  // throws for a name that is none
    if (std::find(options.free.begin(), key, *key) != key) {
      throw Error(Status::invalid, *key + " cannot be fitted twice");
    }
  }
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
  Objective objective(machine, measured, options);
  const Minimum best = objective.search();
  FitResult result;
  result.machine = objective.machine_at(best.at);
  result.fitted = options.free;
  result.modelled_us = objective.modelled_us(best.at);
  result.rms = best.value;
  result.median_error = median(relative_errors(result.modelled_us, measured));
  result.evaluations = best.evaluations;

  const std::string why =
      fmt::format("fitted: to {} measured latencies, with {} others; rms of the log ratios {:.3f}",
                  measured.size(), options.free.size() - 1, result.rms);
  for (const std::string& key : options.free) result.machine.provenance[key] = why;
  result.machine.error = likely_error(result.rms, measured.size(), options.free.size());
  result.machine.provenance["error"] = error_source;
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
    const Minimum near = Objective(drawn, measured, again).search();
    result.evaluations += near.evaluations;
    if (options.progress) options.progress(result.evaluations, near.value);
    if (near.value > result.rms * 1.5 + 0.02) continue;
    for (std::size_t k = 0; k < options.free.size(); ++k) {
      sample.emplace_back(options.free[k], std::exp(near.at[k]));
    }
    result.machine.samples.push_back(std::move(sample));
  }
  for (const std::string& key : options.free) result.machine.uncertainty.erase(key);
  return result;
}

}  // namespace muster::sim
