// SPDX-License-Identifier: BSD-3-Clause
#include "sim/validate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace muster::sim {
namespace {

/// One comparison of two latencies, if they differ by enough to matter. A model in which they are
/// equal has not told them apart.
void compare(Share& share, double measured, double measured_other, double modelled,
             double modelled_other) {
  const double ratio = measured / measured_other;
  if (std::max(ratio, 1 / ratio) <= 1 + matters) return;
  ++share.all;
  if (ratio > 1 ? modelled > modelled_other : modelled < modelled_other) ++share.good;
}

std::vector<double> latencies_of(const MachineModel& machine,
                                 const std::vector<Measurement>& measured, const Effort& effort,
                                 std::uint64_t seed) {
  std::vector<double> result(measured.size());
  run_parallel(measured.size(), [&](std::size_t n, StackPool& pool) {
    result[n] = latency_us_of(machine, measured[n].query, effort, seed, pool);
  });
  return result;
}

bool in_use(const MachineModel& machine, Mechanism mechanism) {
  const Parameters& parameters = machine.parameters;
  if (mechanism == Mechanism::line_data && parameters.line_data_ns <= 0) return false;
  if (mechanism == Mechanism::owner_hold && parameters.owner_hold < 0.5) return false;
  if (mechanism == Mechanism::run_ahead && parameters.run_ahead < 1) return false;
  if (mechanism == Mechanism::set_fill && parameters.set_fill_ns <= 0) return false;
  if (mechanism == Mechanism::home_way && parameters.home_way < 0.5) return false;
  return machine.mechanisms.has(mechanism);
}

bool linear(const std::string& algorithm) {
  constexpr std::array<std::string_view, 5> names = {"sense-reversing", "sense-reversing-counter",
                                                     "sense-reversing-gr", "base-linear",
                                                     "base-double-ring"};
  return std::find(names.begin(), names.end(), algorithm) != names.end();
}

}  // namespace

Share pairs_ordered(const std::vector<Measurement>& measured, const std::vector<double>& modelled) {
  Share share;
  for (std::size_t a = 0; a < measured.size(); ++a) {
    for (std::size_t b = a + 1; b < measured.size(); ++b) {
      if (measured[a].query.ranks != measured[b].query.ranks ||
          measured[a].query.map_by != measured[b].query.map_by) {
        continue;
      }
      compare(share, measured[a].latency_us, measured[b].latency_us, modelled[a], modelled[b]);
    }
  }
  return share;
}

Share mapping_directions(const std::vector<Measurement>& measured,
                         const std::vector<double>& modelled) {
  Share share;
  for (std::size_t a = 0; a < measured.size(); ++a) {
    if (measured[a].query.map_by != Mapping::core) continue;
    for (std::size_t b = 0; b < measured.size(); ++b) {
      if (measured[b].query.map_by == Mapping::core ||
          measured[a].query.algorithm != measured[b].query.algorithm ||
          measured[a].query.ranks != measured[b].query.ranks) {
        continue;
      }
      compare(share, measured[a].latency_us, measured[b].latency_us, modelled[a], modelled[b]);
    }
  }
  return share;
}

std::vector<Pick> picks(const std::vector<Measurement>& measured,
                        const std::vector<double>& modelled) {
  std::map<std::pair<unsigned, Mapping>, std::vector<std::size_t>> groups;
  for (std::size_t n = 0; n < measured.size(); ++n) {
    groups[{measured[n].query.ranks, measured[n].query.map_by}].push_back(n);
  }
  std::vector<Pick> result;
  for (const auto& [key, members] : groups) {
    if (members.size() < 2) continue;
    const std::size_t chosen =
        *std::min_element(members.begin(), members.end(),
                          [&](std::size_t a, std::size_t b) { return modelled[a] < modelled[b]; });
    const std::size_t best =
        *std::min_element(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
          return measured[a].latency_us < measured[b].latency_us;
        });
    result.push_back({key.first, key.second, measured[chosen].query.algorithm,
                      measured[best].query.algorithm,
                      measured[chosen].latency_us / measured[best].latency_us - 1});
  }
  return result;
}

std::optional<double> naive_us(const Query& query, const std::vector<Measurement>& known) {
  for (const Measurement& k : known) {
    if (k.query.algorithm != query.algorithm) continue;
    const double factor = linear(query.algorithm) ? static_cast<double>(query.ranks) / k.query.ranks
                                                  : static_cast<double>(rounds_of(query.ranks)) /
                                                        std::max(1U, rounds_of(k.query.ranks));
    return k.latency_us * factor;
  }
  return std::nullopt;
}

Validation validate(const MachineModel& machine, const std::vector<Measurement>& measured,
                    const std::vector<Measurement>& known, const Effort& effort) {
  Validation v;
  std::vector<Query> queries;
  for (const Measurement& m : measured) queries.push_back(m.query);
  v.modelled = predict(machine, queries, effort);
  std::vector<double> modelled;
  for (const Prediction& prediction : v.modelled) modelled.push_back(prediction.latency_us);

  const std::vector<double> errors = relative_errors(modelled, measured);
  v.median_error = median(errors);
  v.rms = rms_of(modelled, measured);
  for (std::size_t n = 0; n < measured.size(); ++n) {
    const double us = measured[n].latency_us;
    ++v.within_35_percent.all;
    ++v.within_interval.all;
    if (errors[n] <= 0.35) ++v.within_35_percent.good;
    if (us >= v.modelled[n].latency_us_low && us <= v.modelled[n].latency_us_high) {
      ++v.within_interval.good;
    }
  }
  v.pairs_ordered = pairs_ordered(measured, modelled);
  v.mapping_directions = mapping_directions(measured, modelled);
  v.picks = picks(measured, modelled);

  std::vector<double> naive_errors;
  std::vector<double> beside;
  for (std::size_t n = 0; n < measured.size(); ++n) {
    v.naive_us.push_back(naive_us(measured[n].query, known));
    if (!v.naive_us[n]) continue;
    naive_errors.push_back(std::abs(*v.naive_us[n] / measured[n].latency_us - 1));
    beside.push_back(errors[n]);
  }
  if (!naive_errors.empty()) {
    v.naive_median_error = median(naive_errors);
    v.median_error_beside_naive = median(beside);
  }
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    v.median_error_by_seed.push_back(
        median(relative_errors(latencies_of(machine, measured, effort, seed), measured)));
  }
  v.ablations.push_back({"", v.rms, v.median_error});
  for (int m = 0; m < mechanism_count; ++m) {
    const auto mechanism = static_cast<Mechanism>(m);
    if (!in_use(machine, mechanism) || mechanism >= Mechanism::data_caches) continue;
    MachineModel without = machine;
    without.mechanisms = machine.mechanisms.without(mechanism);
    const std::vector<double> us = latencies_of(without, measured, effort, 1);
    v.ablations.push_back({std::string(mechanism_name(mechanism)), rms_of(us, measured),
                           median(relative_errors(us, measured))});
  }
  return v;
}

}  // namespace muster::sim
