// SPDX-License-Identifier: BSD-3-Clause
// What is said about a set of latencies: quantiles and an interval for the median that does not
// pretend to know more than was measured. Thread-safe; everything here is a pure function.
#pragma once

#include <cstdint>
#include <vector>

namespace muster::bench {

/// The q-quantile (0 to 1) of ascending values by linear interpolation between the two nearest
/// (Hyndman and Fan's type 7, as R and numpy do). NaN if there are none.
double quantile(const std::vector<double>& ascending, double q);

double median(std::vector<double> values);

struct Interval {
  double lo = 0;
  double hi = 0;
};

/// Whether the two have a point in common: then no order is claimed between what they belong to.
constexpr bool overlap(const Interval& a, const Interval& b) {
  return a.lo <= b.hi && b.lo <= a.hi;
}

struct Summary {
  double median = 0;
  double min = 0;
  double p99 = 0;
  Interval ci95;            ///< of the median
  std::size_t samples = 0;  ///< 0: nothing was measured, and the rest means nothing
};

/// `blocks`: samples that were taken in one go. The interval is a percentile bootstrap that draws
/// whole blocks (Davison and Hinkley 1997, section 3.8): samples of one block are alike, and
/// drawing them singly would make the interval as narrow as if each were new evidence. Few blocks
/// are cut up, to no fewer than 10 pieces where there are as many samples. The same seed gives the
/// same interval.
Summary summarize(const std::vector<std::vector<double>>& blocks, std::uint64_t seed);

/// So many episodes took so long, together.
struct Turn {
  double ns = 0;
  double episodes = 0;

  double mean_ns() const { return ns / episodes; }
};

/// The mean of all turns: their time over their episodes; NaN if there is no episode. An
/// interruption counts as what it cost.
double mean_of(const std::vector<Turn>& turns);
/// Its interval (bootstrap over turns).
Interval mean_interval(const std::vector<Turn>& turns, std::uint64_t seed);

/// How two that took turns compare: the median over the rounds of a's median over b's, and its
/// interval (bootstrap over rounds). What changes from round to round (the clock rate, the
/// neighbours of a virtual machine) cancels out. NaN in either is a round to pass over.
struct PairedRatio {
  double ratio = 0;
  Interval ci95;
  std::size_t rounds = 0;  ///< that both have; 0: nothing can be said
};

PairedRatio paired_ratio(const std::vector<double>& a, const std::vector<double>& b,
                         std::uint64_t seed);

/// By how much a is more than b: the median over the rounds, and so on, as above.
struct PairedDifference {
  double difference = 0;
  Interval ci95;
  std::size_t rounds = 0;
};

PairedDifference paired_difference(const std::vector<double>& a, const std::vector<double>& b,
                                   std::uint64_t seed);

}  // namespace muster::bench
