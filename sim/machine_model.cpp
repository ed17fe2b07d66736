// SPDX-License-Identifier: BSD-3-Clause
#include "sim/machine_model.hpp"

#include <algorithm>
#include <cmath>

#include "machine/error.hpp"
#include "sim/random.hpp"

namespace muster::sim {
namespace {

/// Of each core of the machine, its unit of a level, or kOutside; the whole machine is one if there
/// is no level.
std::vector<unsigned> units_of_cores(const MachineModel& machine,
                                     const std::optional<LevelKind>& kind) {
  std::vector<unsigned> units(machine.shape->cores().size(), 0);
  if (!kind) return units;
  const Level* level = machine.shape->level(*kind);
  if (level == nullptr) {
    throw Error(Status::unsupported,
                "machine " + machine.name + " has no level " + std::string(level_name(*kind)));
  }
  std::fill(units.begin(), units.end(), kOutside);
  for (unsigned u = 0; u < level->units.size(); ++u) {
    for (const unsigned core : level->units[u].cores) units[core] = u;
  }
  return units;
}

/// Who is in no unit is one by itself.
std::vector<unsigned> with_loners(std::vector<unsigned> units) {
  unsigned next = 0;
  for (const unsigned unit : units) next = std::max(next, is_unit(unit) ? unit + 1 : 0);
  for (unsigned& unit : units) unit = is_unit(unit) ? unit : next++;
  return units;
}

}  // namespace

Geometry geometry_of(const MachineModel& machine, const std::vector<unsigned>& cores) {
  const std::vector<unsigned> die_of_core = with_loners(units_of_cores(machine, machine.domain));
  Geometry geometry;
  geometry.dies_ = 0;
  for (const unsigned die : die_of_core) geometry.dies_ = std::max(geometry.dies_, die + 1);
  if (geometry.dies_ > dies_max) {
    throw Error(Status::unsupported,
                "machine " + machine.name + " has " + std::to_string(geometry.dies_) +
                    " coherence domains; the model holds " + std::to_string(dies_max));
  }
  std::vector<unsigned> core_of_die(geometry.dies_, 0);  // one of each
  for (unsigned core = 0; core < die_of_core.size(); ++core) core_of_die[die_of_core[core]] = core;
  for (const unsigned core : cores) {
    geometry.die_of_.push_back(static_cast<std::uint16_t>(die_of_core.at(core)));
  }

  // Without a level of NUMA nodes there is one memory; a die outside of all counts as its own.
  const Level* const numa = machine.shape->level(LevelKind::numa);
  for (unsigned die = 0; die < geometry.dies_; ++die) {
    const unsigned pu = machine.shape->cores()[core_of_die[die]].pus.front();
    const unsigned unit = numa == nullptr ? 0 : numa->unit_of(pu);
    geometry.memory_of_.push_back(is_unit(unit) ? unit : kOutside - die);
  }

  // Bottom up: the innermost level that two cores share is the first that fits.
  const std::size_t pairs = std::size_t{geometry.dies_} * geometry.dies_;
  geometry.between_.assign(pairs, -1);
  for (const LatencyClass& latency : machine.latencies) {
    const std::vector<unsigned> unit = units_of_cores(machine, latency.level);
    bool joins_a_die = true;
    for (unsigned a = 0; a < die_of_core.size() && joins_a_die; ++a) {
      joins_a_die = unit[a] == unit[core_of_die[die_of_core[a]]];
    }
    if (!joins_a_die) {
      Geometry::Inner inner{{}, from_ns(latency.ns)};
      const std::vector<unsigned> of_core = with_loners(unit);
      for (const unsigned core : cores) {
        inner.unit_of.push_back(static_cast<std::uint16_t>(of_core[core]));
      }
      geometry.inner_.push_back(std::move(inner));
      continue;
    }
    for (unsigned a = 0; a < geometry.dies_; ++a) {
      for (unsigned b = 0; b < geometry.dies_; ++b) {
        Time& between = geometry.between_[a * geometry.dies_ + b];
        const unsigned its = unit[core_of_die[a]];
        if (between < 0 && (a == b || (is_unit(its) && its == unit[core_of_die[b]]))) {
          between = from_ns(latency.ns);
        }
      }
    }
  }
  return geometry;
}

MachineCosts costs_of(const MachineModel& machine) {
  const Parameters& p = machine.parameters;
  MachineCosts costs{
      .source = machine.guessed.empty() ? "those of " + machine.name : machine.guessed,
      .classes = {},
      .domain = machine.domain,
      .costs = {.call = p.call_ns,
                .poll_turn = p.poll_turn_ns,
                .hit = p.hit_ns,
                .load_gap = p.load_gap_ns,
                .store_gap = p.store_gap_ns,
                .rmw_local = p.rmw_local_ns,
                .read_occupancy = p.read_occupancy_ns,
                .agent_occupancy = p.agent_occupancy_ns,
                .poll_overlap = p.poll_overlap,
                .poll_ways = static_cast<unsigned>(p.poll_ways),
                .set_fill = p.set_fill_ns,
                .ll_sc = machine.mechanisms.has(Mechanism::ll_sc)}};
  for (const LatencyClass& each : machine.latencies) costs.classes.push_back({each.level, each.ns});
  return costs;
}

std::vector<unsigned> cores_of_ranks(const MachineModel& machine,
                                     const std::vector<PuSet>& bindings) {
  std::vector<unsigned> of_ranks;
  std::vector<bool> taken(machine.shape->cores().size());
  if (bindings.empty()) throw Error(Status::invalid, "the model wants a rank");
  for (const PuSet& pus : bindings) {
    const unsigned core = pus.empty() ? kOutside : machine.shape->core_of(pus.first());
    if (core == kOutside || taken[core]) {
      throw Error(Status::invalid, "machine " + machine.name + " has " +
                                       std::to_string(taken.size()) +
                                       " cores, and the model gives each rank one of its own: "
                                       "ask for as many ranks at most");
    }
    taken[core] = true;
    of_ranks.push_back(core);
  }
  return of_ranks;
}

std::vector<MachineModel> ensemble_of(const MachineModel& machine, unsigned count) {
  std::vector<MachineModel> members{machine};
  Random random(1);
  for (unsigned n = 0; n < count; ++n) {
    MachineModel member = machine;
    if (n < machine.samples.size()) {
      for (const auto& [key, value] : machine.samples[n]) member.set(key, value, "");
    } else if (machine.samples.empty() && !machine.uncertainty.empty()) {
      for (const auto& [key, relative] : machine.uncertainty) {
        const double exponent = 2 * random.unit() - 1;
        member.set(key, machine.value(key) * std::pow(1 + relative, exponent), "");
      }
    } else {
      break;
    }
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace muster::sim
