// SPDX-License-Identifier: BSD-3-Clause
#include "fitting/known_machines.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace muster {
namespace {

constexpr Costs costs(double read_occupancy, double agent_occupancy, double rmw_local = 10,
                      bool ll_sc = false) {
  return {.rmw_local = rmw_local,
          .read_occupancy = read_occupancy,
          .agent_occupancy = agent_occupancy,
          .ll_sc = ll_sc};
}

constexpr KnownMachine machines[] = {
    {"kunpeng920-2s",
     "aarch64",
     "0x48",
     2,
     2,
     32,
     35,
     79,
     196,
     {.rmw_local = 5,
      .read_occupancy = 13.9829,
      .agent_occupancy = 6.02278,
      .poll_overlap = 32,
      .set_fill = 8.81909,
      .ll_sc = true}},
    {"epyc-7763-2s", "x86_64", "AuthenticAMD", 2, 8, 8, 25, 124.2, 303.6, costs(11.2, 4.6)},
    {"epyc-9654-2s", "x86_64", "AuthenticAMD", 2, 12, 8, 27.1, 99.3, 191.6, costs(12.1, 5.0)},
    {"power9-2s", "ppc64le", "", 2, 8, 2, 16.7, 483.3, 716.6, costs(7.5, 3.1, 10, true)},
    {"xeon-8375c", "x86_64", "GenuineIntel", 2, 1, 32, 51.3, 51.3, 107.8, costs(23.0, 9.4)},
    {"graviton3", "aarch64", "0x41", 1, 1, 64, 46.4, 46.4, 46.4, costs(20.8, 8.5)},
};

/// About the median of those above. Which instructions it adds with nobody knows.
constexpr KnownMachine generic{"generic", "", "", 2, 4, 8, 30, 110, 200, costs(13, 5.5)};

/// A call into MPI and a turn of its progress loop, as the machines' descriptions have them.
constexpr double call_of_mpi_ns = 250;
constexpr double poll_turn_of_mpi_ns = 240;

/// What shares a last-level cache, as far as the topology tells; null: all do.
const Level* domain_level(const Topology& topology) {
  const Level* cache = topology.level(LevelKind::l3);
  if (cache == nullptr) cache = topology.level(LevelKind::l2);
  const Level* finest = nullptr;
  for (const Level* level :
       {cache, topology.level(LevelKind::numa), topology.level(LevelKind::package)}) {
    if (level == nullptr || level->units.size() < 2 || level->cores_per_unit_max() < 2) continue;
    if (finest == nullptr || level->units.size() > finest->units.size()) finest = level;
  }
  return finest;
}

double units(const Level* level) {
  return level == nullptr ? 1 : static_cast<double>(std::max<std::size_t>(1, level->units.size()));
}

}  // namespace

std::span<const KnownMachine> known_machines() { return machines; }

NearestMachine nearest_machine(const Topology& topology) {
  const double packages = units(topology.level(LevelKind::package));
  const double domains = units(domain_level(topology));
  const auto cores = static_cast<double>(topology.cores().size());
  const Processor& processor = topology.processor();
  const auto strangeness = [&](const KnownMachine& known) {
    if (!processor.vendor.empty() && known.vendor == processor.vendor) return 0;
    return known.architecture == processor.architecture ? 1 : 2;
  };
  const auto ratios = [&](const KnownMachine& known) {
    return std::array{std::abs(std::log(packages / known.packages)),
                      std::abs(std::log(domains / packages / known.domains)),
                      std::abs(std::log(cores / domains / known.cores))};
  };
  const auto distance = [&](const KnownMachine& known) {
    const auto [of_packages, of_domains, of_cores] = ratios(known);
    return std::pair(strangeness(known), of_packages + of_domains + of_cores);
  };
  const KnownMachine& nearest = *std::min_element(
      std::begin(machines), std::end(machines),
      [&](const KnownMachine& a, const KnownMachine& b) { return distance(a) < distance(b); });
  constexpr std::string_view why[] = {"the nearest of its vendor",
                                      "the nearest of its architecture",
                                      "the nearest by numbers of packages, caches and cores"};
  const auto near = ratios(nearest);
  return {nearest, why[strangeness(nearest)],
          strangeness(nearest) < 2 && *std::min_element(near.begin(), near.end()) < std::log(2)};
}

MachineCosts costs_for(const Topology& topology, bool progresses) {
  const auto [nearest, why, is_alike] = nearest_machine(topology);
  const KnownMachine& like = is_alike ? nearest : generic;
  MachineCosts result;
  result.source = is_alike ? "those of " + std::string(like.name) + ", " + std::string(why)
                           : "generic: no known machine is like this one";
  result.like = nearest.name;
  result.costs = like.costs;
  if (progresses) {
    result.costs.call = call_of_mpi_ns;
    result.costs.poll_turn = poll_turn_of_mpi_ns;
  }
  const Level* const domain = domain_level(topology);
  if (domain == nullptr) {
    result.classes = {{{}, like.domain_ns}};
    return result;
  }
  result.domain = domain->kind;
  result.classes = {{domain->kind, like.domain_ns}};
  if (units(topology.level(LevelKind::package)) < 2) {
    result.classes.push_back({{}, like.package_ns});
    return result;
  }
  if (const Level* const around = level_around(topology, *domain)) {
    result.classes.push_back({around->kind, like.package_ns});
  }
  // One of a single package does not tell how far another one is.
  result.classes.push_back({{}, like.packages > 1 ? like.machine_ns : generic.machine_ns});
  return result;
}

Seats seats_of(const Topology& topology, const std::vector<PuSet>& bindings,
               const MachineCosts& machine) {
  Seats seats;
  const auto add = [&](const Level& level, double ns) {
    std::vector<unsigned> unit_of;
    unsigned alone = 0;  // who is in no one unit is near to nobody
    for (const Unit& unit : level.units) alone = std::max(alone, unit.id + 1);
    for (const PuSet& pus : bindings) {
      const unsigned unit = level.unit_of_binding(pus);
      unit_of.push_back(is_unit(unit) ? unit : alone++);
    }
    seats.levels.push_back({std::move(unit_of), ns});
  };
  const Level* domain = machine.domain ? topology.level(*machine.domain) : nullptr;
  if (domain != nullptr && domain->units.size() < 2) domain = nullptr;
  bool has_domain = false;
  for (const MachineCosts::Class& each : machine.classes) {
    const Level* const level = each.level ? topology.level(*each.level) : nullptr;
    const bool whole = level == nullptr || level->units.size() < 2;
    // A domain that no class is of lies within the next larger one.
    if (domain != nullptr && !has_domain &&
        (whole || level->cores_per_unit_max() >= domain->cores_per_unit_max())) {
      add(*domain, each.ns);
      seats.domain = seats.levels.size() - 1;
      has_domain = true;
      if (level == domain) continue;
    }
    if (!whole) {
      add(*level, each.ns);
      continue;
    }
    seats.levels.push_back({std::vector<unsigned>(bindings.size(), 0), each.ns});
    break;
  }
  if (domain == nullptr) seats.domain = seats.levels.size() - 1;
  return seats;
}

}  // namespace muster
