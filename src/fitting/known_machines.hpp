// SPDX-License-Identifier: BSD-3-Clause
// What transfers cost on the machines that the model knows, and which of them another one is like.
#pragma once

#include <span>
#include <string_view>

#include "fitting/estimate.hpp"
#include "topology/topology.hpp"

namespace muster {

/// A domain is what shares a last-level cache.
struct KnownMachine {
  std::string_view name;          ///< its description is sim/machines/NAME.machine
  std::string_view architecture;  ///< as Processor has it; so the vendor
  std::string_view vendor;
  unsigned packages;
  unsigned domains;   ///< in a package
  unsigned cores;     ///< in a domain
  double domain_ns;   ///< one way between two cores of a domain
  double package_ns;  ///< of two domains of a package
  double machine_ns;  ///< of two packages
  Costs costs;
};

/// As their description files have them: test/sim/fitting_test.cpp compares.
std::span<const KnownMachine> known_machines();

struct NearestMachine {
  const KnownMachine& machine;
  std::string_view why;  ///< for people: "the nearest of its vendor"
};

/// Of those of the same vendor, else of the same architecture, else of all: the one whose numbers
/// of packages, domains and cores are nearest, as ratios. Thread-safe.
NearestMachine nearest_machine(const Topology& topology);

/// The seats of ranks with these bindings, with that machine's latencies. Thread-safe.
Seats seats_of(const Topology& topology, const std::vector<PuSet>& bindings,
               const KnownMachine& like);

}  // namespace muster
