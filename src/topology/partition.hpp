// SPDX-License-Identifier: BSD-3-Clause
// Levels as partitions of cores or ranks: which are the same, which lies below which. Private to
// this directory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "topology/levels.hpp"

namespace muster {

/// Unit id by item (core or rank); kSeveralUnits and kOutside are no unit.
using Column = std::vector<unsigned>;

/// Does `a` put together whatever `b` does: is every unit of b with two or more items a unit of a?
bool covers(const Column& a, const Column& b);

/// Is some unit used by two items?
bool shared(const Column& column);

/// A level as the activation rules see it.
struct Candidate {
  LevelKind kind;
  std::string name;
  Column column;
};

/// [K22, step 1]: a candidate that another covers is dropped, with the reason ("groups the same
/// cores as NUMA"; `items` says "cores" or "ranks"). Of those that cover each other one stays: NUMA
/// if it is among them (Kunpeng 920: L3 = NUMA, and the paper's levels are NUMA and PACKAGE), else
/// the first. Returns what stays, as positions in `candidates`, bottom up by containment: A is
/// below B if, over the items that have both, A's units are the smaller ones. Where that says
/// nothing (or, on no known machine, runs in a circle), the order of `candidates` decides.
std::vector<std::size_t> distinct_bottom_up(const std::vector<Candidate>& candidates,
                                            std::vector<DroppedLevel>& dropped,
                                            std::string_view items);

}  // namespace muster
