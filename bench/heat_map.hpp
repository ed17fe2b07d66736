// SPDX-License-Identifier: BSD-3-Clause
// A matrix of latencies as text, at most 79 columns wide.
#pragma once

#include <string>
#include <vector>

#include "sim/pair_matrix.hpp"

namespace muster::bench {

/// Rows and columns in this order; row n is called cpus[n]. Few CPUs: numbers. More: two characters
/// a cell, the denser the farther, on a logarithmic scale that the last line tells; a cell is the
/// median of 2, 4, 8... CPUs square where each would not fit. `colour`: on a background, by escape
/// sequences for 256 colours, besides. For any thread.
std::string heat_map(const sim::PairMatrix& matrix, const std::vector<unsigned>& cpus,
                     const std::vector<unsigned>& order, bool colour);

}  // namespace muster::bench
