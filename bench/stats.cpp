// SPDX-License-Identifier: BSD-3-Clause
#include "bench/stats.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace muster::bench {
namespace {

constexpr std::size_t kBlocksMin = 10;
constexpr int kResamples = 1000;

struct Tagged {
  double value;
  std::uint32_t block;
};

/// Each block cut into equal runs, so that there are at least kBlocksMin if possible; sorted.
std::vector<Tagged> tag_and_sort(const std::vector<std::vector<double>>& blocks,
                                 std::uint32_t& block_count) {
  std::size_t filled = 0;
  for (const auto& block : blocks) filled += block.empty() ? 0 : 1;
  const std::size_t pieces = filled == 0 ? 1 : (kBlocksMin + filled - 1) / filled;
  std::vector<Tagged> all;
  block_count = 0;
  for (const auto& block : blocks) {
    const std::size_t cuts = std::min(pieces, block.size());
    for (std::size_t i = 0; i < block.size(); ++i) {
      all.push_back({block[i], block_count + static_cast<std::uint32_t>(i * cuts / block.size())});
    }
    block_count += static_cast<std::uint32_t>(cuts);
  }
  std::sort(all.begin(), all.end(),
            [](const Tagged& a, const Tagged& b) { return a.value < b.value; });
  return all;
}

/// The lower median when each sample counts as often as its block was drawn.
double weighted_median(const std::vector<Tagged>& ascending,
                       const std::vector<std::uint32_t>& drawn, std::uint64_t total) {
  std::uint64_t below = 0;
  for (const Tagged& sample : ascending) {
    below += drawn[sample.block];
    if (2 * below >= total) return sample.value;
  }
  return ascending.back().value;
}

/// The 95 % interval of a statistic: percentile bootstrap over `values`. `seed` as summarize() has
/// it.
template <class T, class Statistic>
Interval bootstrap(const std::vector<T>& values, Statistic statistic, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> results(kResamples);
  std::vector<T> drawn(values.size());
  for (double& result : results) {
    for (T& value : drawn) value = values[random() % values.size()];
    result = statistic(drawn);
  }
  std::sort(results.begin(), results.end());
  return {quantile(results, 0.025), quantile(results, 0.975)};
}

/// Of the rounds that both have.
template <class Operation>
std::vector<double> by_rounds(const std::vector<double>& a, const std::vector<double>& b,
                              Operation operation) {
  std::vector<double> results;
  for (std::size_t round = 0; round < std::min(a.size(), b.size()); ++round) {
    if (!std::isnan(a[round]) && !std::isnan(b[round]))
      results.push_back(operation(a[round], b[round]));
  }
  return results;
}

}  // namespace

double quantile(const std::vector<double>& ascending, double q) {
  if (ascending.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double at = q * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  const double share = at - static_cast<double>(below);
  const double from = ascending[below];
  const double to = ascending[above];
  return share == 0 || from == to ? from : from + share * (to - from);  // infinite ones, too
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

Summary summarize(const std::vector<std::vector<double>>& blocks, std::uint64_t seed) {
  std::uint32_t block_count = 0;
  const std::vector<Tagged> samples = tag_and_sort(blocks, block_count);
  if (samples.empty()) return {};
  std::vector<double> ascending;
  ascending.reserve(samples.size());
  std::vector<std::uint64_t> size_of_block(block_count, 0);
  for (const Tagged& sample : samples) {
    ascending.push_back(sample.value);
    ++size_of_block[sample.block];
  }

  std::mt19937_64 random(seed);
  std::vector<double> medians(kResamples);
  std::vector<std::uint32_t> drawn(block_count);
  for (double& resampled : medians) {
    std::fill(drawn.begin(), drawn.end(), 0U);
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < block_count; ++i) {
      // Not uniform_int_distribution, which may differ between standard libraries: the bias of
      // the remainder is below 2^-40.
      const auto block = static_cast<std::uint32_t>(random() % block_count);
      ++drawn[block];
      total += size_of_block[block];
    }
    resampled = weighted_median(samples, drawn, total);
  }
  std::sort(medians.begin(), medians.end());
  return {.median = quantile(ascending, 0.5),
          .min = ascending.front(),
          .p99 = quantile(ascending, 0.99),
          .ci95 = {quantile(medians, 0.025), quantile(medians, 0.975)},
          .samples = samples.size()};
}

double mean_of(const std::vector<Turn>& turns) {
  Turn all;
  for (const Turn& turn : turns) {
    all.ns += turn.ns;
    all.episodes += turn.episodes;
  }
  return all.mean_ns();
}

Interval mean_interval(const std::vector<Turn>& turns, std::uint64_t seed) {
  return turns.empty() ? Interval{} : bootstrap(turns, mean_of, seed);
}

PairedRatio paired_ratio(const std::vector<double>& a, const std::vector<double>& b,
                         std::uint64_t seed) {
  const std::vector<double> ratios = by_rounds(a, b, std::divides<>());
  if (ratios.empty()) return {};
  return {
      .ratio = median(ratios), .ci95 = bootstrap(ratios, median, seed), .rounds = ratios.size()};
}

PairedDifference paired_difference(const std::vector<double>& a, const std::vector<double>& b,
                                   std::uint64_t seed) {
  const std::vector<double> differences = by_rounds(a, b, std::minus<>());
  if (differences.empty()) return {};
  return {.difference = median(differences),
          .ci95 = bootstrap(differences, median, seed),
          .rounds = differences.size()};
}

}  // namespace muster::bench
