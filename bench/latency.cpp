// SPDX-License-Identifier: BSD-3-Clause
#include "bench/latency.hpp"

#include <algorithm>
#include <bit>

namespace muster::bench {
namespace {

/// The largest bound that is not more.
std::uint64_t bound_below(float ns) {
  const auto whole = static_cast<std::uint64_t>(ns);
  if (whole < 4) return whole;
  const auto digits = std::bit_width(whole) - 3;  // that the bound has no say in
  return whole >> digits << digits;
}

}  // namespace

std::uint64_t LatencySampler::begin(Report& report) noexcept {
  report.count = 0;
  report.every = std::max(every_min_, report.every / 2);
  return next(report);
}

std::uint64_t LatencySampler::record(Report& report, std::int64_t ns) noexcept {
  report.ns[report.count++] = static_cast<float>(ns);
  if (report.count == kMax) halve(report);
  return next(report);
}

std::uint64_t LatencySampler::next(const Report& report) noexcept {
  return report.count * report.every + (random_.next() & (report.every - 1));
}

void LatencySampler::halve(Report& report) noexcept {
  for (std::uint32_t i = 0; i < kMax / 2; ++i) {
    report.ns[i] = report.ns[2 * i + (random_.next() >> 63)];
  }
  report.count = kMax / 2;
  report.every *= 2;
}

void add_samples(const LatencySampler::Report& report, std::vector<LatencySample>& samples) {
  for (std::uint32_t i = 0; i < report.count; ++i) {
    samples.push_back({report.ns[i], static_cast<float>(report.every)});
  }
}

LatencyDistribution latency_distribution(std::vector<LatencySample> samples) {
  LatencyDistribution result;
  result.samples = samples.size();
  if (samples.empty()) return result;
  std::sort(samples.begin(), samples.end(),
            [](const LatencySample& a, const LatencySample& b) { return a.ns < b.ns; });
  std::vector<double> operations_to;  // each sample, with it
  double all = 0;
  for (const LatencySample& sample : samples) {
    all += sample.operations;
    operations_to.push_back(all);
    const std::uint64_t from_ns = bound_below(sample.ns);
    if (result.histogram.empty() || result.histogram.back().from_ns != from_ns) {
      result.histogram.push_back({from_ns, 0});
    }
    result.histogram.back().operations += sample.operations;
  }
  const auto at = [&](double share) {
    const auto found = std::lower_bound(operations_to.begin(), operations_to.end(), share * all);
    return static_cast<std::size_t>(
        std::min(found - operations_to.begin(), std::ssize(samples) - 1));
  };
  const auto percentile = [&](double share) {
    const std::size_t i = at(share);
    const std::size_t beyond = share < 0.5 ? i + 1 : samples.size() - i;
    return beyond < LatencyDistribution::kBeyondMin ? LatencyDistribution::kNone
                                                    : static_cast<double>(samples[i].ns);
  };
  result.min = samples.front().ns;
  result.p10 = percentile(0.1);
  result.p25 = percentile(0.25);
  result.median = samples[at(0.5)].ns;
  result.p75 = percentile(0.75);
  result.p90 = percentile(0.9);
  result.p99 = percentile(0.99);
  result.p999 = percentile(0.999);
  result.max = samples.back().ns;
  return result;
}

}  // namespace muster::bench
