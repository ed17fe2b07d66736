// SPDX-License-Identifier: BSD-3-Clause
// The levels that a matrix of core-to-core latencies shows by itself, and how they compare with
// those that the topology names. Pure functions, for any thread.
#pragma once

#include <string>
#include <vector>

#include "sim/pair_matrix.hpp"

namespace muster::bench {

/// Which group each row is in, numbered from 0 by their first rows.
using Groups = std::vector<unsigned>;

/// A way to group the rows, and the pairs whose innermost common group is one of these.
struct PairLevel {
  Groups groups;
  std::vector<unsigned> sizes;  ///< of each group, in rows
  std::size_t pairs = 0;
  double median_ns = 0;  ///< one way; NaN, like the others, where no such pair has a time
  double p10_ns = 0;
  double p90_ns = 0;
};

/// `levels`: bottom up; one group of all rows is added.
std::vector<PairLevel> classify_pairs(const sim::PairMatrix& matrix, std::vector<Groups> levels);

struct FoundLevels {
  std::vector<PairLevel> levels;  ///< bottom up; the last is one group of all rows
  std::vector<unsigned> order;    ///< rows, those of a group side by side, and ascending
};

/// Groups are joined, nearest first, by the mean of the logarithms of what lies between them
/// (average linkage). Where the next join is a tenth farther than the last one, a level ends, if by
/// then two or more groups of several rows hold half of the rows. It is left out if its pairs are
/// not a tenth nearer than the next one's, or if it is but a part of that: it holds half of the
/// pairs that the next one's groups do, or more. Pairs without a time tell nothing.
FoundLevels find_levels(const sim::PairMatrix& matrix);

/// A level as the topology names it, on a matrix's rows.
struct NamedLevel {
  std::string name;  ///< "L3", or "L3, NUMA" where several group the rows alike
  Groups groups;
};

/// Those that group rows without holding them all, bottom up. Row n is PU cpus[n].
std::vector<NamedLevel> levels_on(const Topology& topology, const std::vector<unsigned>& cpus);

/// Of the pairs of rows that either puts into a group, the share that both do (Jaccard): 1 if they
/// group alike.
double agreement(const Groups& a, const Groups& b);

}  // namespace muster::bench
