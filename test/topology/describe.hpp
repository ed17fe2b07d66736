// SPDX-License-Identifier: BSD-3-Clause
// What golden files say about a machine.
#pragma once

#include <string>
#include <vector>

#include "topology/topology.hpp"

namespace muster::test {

/// Levels of several masks, and the groups of several mappings, rank counts and bindings. Says
/// nothing of where the description came from.
std::string describe(const Topology& topology);

/// Ranks bound to every unit of a level, `per_unit` on each, dealt in turn (--map-by and --bind-to
/// numa).
std::vector<PuSet> bind_to_units(const Level& level, unsigned per_unit);

/// The lines in which two texts differ, with their numbers, at most `limit`.
std::string difference(const std::string& expected, const std::string& actual, unsigned limit = 20);

}  // namespace muster::test
