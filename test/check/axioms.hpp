// SPDX-License-Identifier: BSD-3-Clause
// A judge of complete executions that shares nothing with the explorer but the graph's raw data:
// who did what in which order, who read from whom, and each location's modification order. It says
// the rules in the words of the C++20 standard ([intro.races], [atomics.order], [atomics.fences]),
// where the explorer has clocks and the oracle relations of the literature.
#pragma once

#include <string>

#include "check/graph.hpp"

namespace muster::check::test {

/// Which rule an execution breaks, and where; empty: none. A data race is a broken rule, too.
std::string broken_rule(const Graph& graph);

}  // namespace muster::check::test
