// SPDX-License-Identifier: BSD-3-Clause
// The composed barrier that fits some participants where they sit: a few recipes over each set of
// levels, estimated; the quickest is taken.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "barrier/registry.hpp"
#include "fitting/known_machines.hpp"
#include "topology/topology.hpp"

namespace muster {

/// Ways to group participants: by the levels of this name, as "scheduled-" takes it.
struct NamedGroups {
  std::string levels;
  GroupTree groups;
};

/// One for each set of the topology's levels, the one without a level last. Throws Error(declined)
/// if `bindings` do not say where somebody is; else as Topology::place().
std::vector<NamedGroups> all_groups(const Topology& topology, const std::vector<PuSet>& bindings);

struct Fitting {
  std::string algorithm;  ///< as parse_algorithm() takes it
  double ns = 0;          ///< estimated
  unsigned tried = 0;     ///< barriers
};

/// `ways` is not empty. Deterministic, thread-safe. A millisecond for 128 participants.
Fitting fit_barrier(const std::vector<NamedGroups>& ways, const Seats& seats, const Costs& costs);

/// What fit_barrier() tries over each set of levels.
std::span<const std::string_view> fitted_recipes();

/// The same as `auto` takes it. `bindings` say where each one is. Throws as all_groups().
Choice fit_choice(const Topology& topology, const std::vector<PuSet>& bindings,
                  const MachineCosts& machine);

}  // namespace muster
