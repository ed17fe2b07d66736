// SPDX-License-Identifier: BSD-3-Clause
// What transfers cost on the machines that the model knows, and which of them another one is like.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// Of those of the same vendor, else of the same architecture, else of all: the one whose numbers
/// of packages, domains and cores are nearest, as ratios. Thread-safe.
struct NearestMachine {
  const KnownMachine& machine;
  std::string_view why;  ///< for people: "the nearest of its vendor"
  bool is_alike;         ///< of its architecture, and one of these numbers is less than twice so
};
NearestMachine nearest_machine(const Topology& topology);

/// What an estimate has to know of a machine besides where participants sit.
struct MachineCosts {
  struct Class {
    std::optional<LevelKind> level;  ///< empty: the machine, the last class
    double ns;  ///< one way between two whose innermost common unit is of this level
  };
  std::string source;               ///< for people: whose costs these are
  std::string_view like = {};       ///< of a guess: the known machine that is nearest
  std::vector<Class> classes;       ///< bottom up
  std::optional<LevelKind> domain;  ///< whose units share a cache; empty: the machine
  Costs costs;
};

/// A guess at a machine that only its topology is known of, for all who have to guess: the costs of
/// the nearest known one, or generic ones if that one is not alike. Of an MPI's progress loop, if
/// `progresses`. Thread-safe.
MachineCosts costs_for(const Topology& topology, bool progresses);

/// The seats of ranks with these bindings. Thread-safe.
Seats seats_of(const Topology& topology, const std::vector<PuSet>& bindings,
               const MachineCosts& machine);

}  // namespace muster
