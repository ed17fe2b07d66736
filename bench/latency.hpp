// SPDX-License-Identifier: BSD-3-Clause
// How long single operations take: which of them are timed, and what is said about all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/split_mix.hpp"

namespace muster::bench {

/// Which operations of a thread's slice are timed: one in each window of equally many, at random,
/// so that neither the cache lines of a sequential walk nor anything else falls in step with them.
/// When there is no room for more, one of each two neighbours is kept, at random, and windows are
/// twice as long from then on. So every operation of a slice has the same chance, however many
/// there will be, and few clock readings are among them: with n operations
/// kMax (1 + log2(n / (kMax * every)) / 2) at most, `every` being that of the beginning. Of one
/// thread. Nothing is inline: it would take registers from the loop that is measured.
class LatencySampler {
 public:
  static constexpr std::uint32_t kMax = 2048;     ///< a power of two
  static constexpr std::uint64_t kEveryMin = 64;  ///< a power of two

  /// Of a slice; shared with the coordinator, zero at first.
  struct Report {
    std::uint64_t every;  ///< operations that each sample stands for
    std::uint32_t count;
    float ns[kMax];
  };

  /// `every_min`: the least length of a window, a power of two. 1 where operations may be slow.
  explicit LatencySampler(std::uint64_t seed, std::uint64_t every_min = kEveryMin)
      : random_(seed), every_min_(every_min) {}

  /// A slice begins; the number of the first operation to be timed, from 0. It begins with half of
  /// the last slice's windows: fewer clock readings, and few samples are lost if it is slower.
  std::uint64_t begin(Report& report) noexcept;

  /// That operation took so long; the number of the next one.
  std::uint64_t record(Report& report, std::int64_t ns) noexcept;

 private:
  std::uint64_t next(const Report& report) noexcept;
  void halve(Report& report) noexcept;

  SplitMix64 random_;
  std::uint64_t every_min_;
};

struct LatencySample {
  float ns;
  float operations;  ///< that it stands for
};

/// Appends what a slice's report has.
void add_samples(const LatencySampler::Report& report, std::vector<LatencySample>& samples);

/// Of operations, each counted once, whoever did it.
struct LatencyDistribution {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  /// From `from_ns` (inclusive) to the next larger bound: 0, 1, 2, 3, then 4, 5, 6 and 7 times each
  /// power of two.
  struct Bucket {
    std::uint64_t from_ns;
    double operations;  ///< that its samples stand for, more than 0
  };

  std::size_t samples = 0;  ///< 0: nothing was measured, and there is no number
  /// Percentiles: the least latency that so many of the operations do not exceed. NaN but for the
  /// median where fewer than `kBeyondMin` samples lie there or beyond, away from the median: it
  /// would be those few's, not the lock's.
  static constexpr std::size_t kBeyondMin = 5;
  double min = kNone;
  double p10 = kNone;
  double p25 = kNone;
  double median = kNone;
  double p75 = kNone;
  double p90 = kNone;
  double p99 = kNone;
  double p999 = kNone;
  double max = kNone;
  std::vector<Bucket> histogram;  ///< ascending
};

LatencyDistribution latency_distribution(std::vector<LatencySample> samples);

}  // namespace muster::bench
