// SPDX-License-Identifier: BSD-3-Clause
// A machine as its description file has it: shape, latencies, parameters, and where each of them
// came from. doc/model.md documents the format.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fitting/known_machines.hpp"
#include "sim/geometry.hpp"
#include "sim/mechanism.hpp"
#include "topology/topology.hpp"

namespace muster::sim {

/// How far apart two cores are whose innermost common unit is of this level.
struct LatencyClass {
  std::optional<LevelKind> level;  ///< empty: MACHINE, the last class
  double ns;                       ///< one way
  std::string name() const { return level ? std::string(level_name(*level)) : "MACHINE"; }
};

/// One of a few equally credible settings of uncertain parameters: what an interval is made of.
using Sample = std::vector<std::pair<std::string, double>>;  ///< parameter or latency, value

struct MachineModel {
  std::string name;
  std::string about;
  std::string topology;                 ///< hwloc's synthetic description, or "file PATH"
  std::optional<Topology> shape;        ///< always there in a model that parse_machine() made
  std::optional<LevelKind> domain;      ///< the level whose units are the dies; empty: MACHINE
  std::vector<LatencyClass> latencies;  ///< bottom up
  Parameters parameters;
  Mechanisms mechanisms = Mechanisms::all();
  std::string guessed;       ///< whose costs these are, if only the topology is known; else empty
  double error = 0;          ///< relative: how far off the model is known to be
  double message_error = 0;  ///< the same of barriers over messages; 0: as the others
  std::map<std::string, double, std::less<>> uncertainty;  ///< relative, by parameter or latency
  std::vector<Sample> samples;
  std::map<std::string, std::string, std::less<>> provenance;  ///< by key: "kind: text"

  /// A parameter ("read-occupancy") or a latency ("latency-NUMA") by name. Throws
  /// Error(unknown_name).
  double value(std::string_view key) const;
  /// The least and the largest that it may be. Throws likewise.
  std::pair<double, double> range(std::string_view key) const;
  /// Why it cannot have this value; empty if it can. Throws likewise.
  std::string fault(std::string_view key, double value) const;
  /// What is outside of the range becomes its nearest end.
  void set(std::string_view key, double value, std::string why);
  /// As set(), once and for all: no margin is left of it, and no sample says otherwise.
  void fix(std::string_view key, double value, std::string why);
};

/// Throws Error(invalid) for a name that would not do in a file, a CSV or a plot: it is made of
/// letters, digits and ".-_+".
void check_machine_name(const std::string& name);

/// What the description in `text` says. `source` names it in errors, which are Error(invalid) and
/// begin "source:line: "; a relative topology file is looked for in `folder`.
MachineModel parse_machine(const std::string& text, const std::string& source,
                           const std::string& folder);

/// As parse_machine() reads it, with every provenance.
std::string format_machine(const MachineModel& machine);

/// The machines that come with the program, by name: name and description file.
const std::vector<std::pair<std::string_view, std::string_view>>& shipped_machines();

/// A shipped machine's name, or a file (it contains '/' or ends in ".machine"). Throws
/// Error(unknown_name), listing the shipped ones, or Error(invalid).
MachineModel load_machine(const std::string& name_or_file);

/// What `auto` estimates with there.
MachineCosts costs_of(const MachineModel& machine);

/// Participant i on core cores[i], a position in shape->cores(). Throws Error(unsupported) if the
/// machine has more dies than the model can hold, or a core outside of all.
Geometry geometry_of(const MachineModel& machine, const std::vector<unsigned>& cores);

/// Each rank's core. Throws Error(invalid) if two share one: the model gives each one of its own.
std::vector<unsigned> cores_of_ranks(const MachineModel& machine,
                                     const std::vector<PuSet>& bindings);

/// The machine itself, then `count` of its samples, or as many draws from its uncertainties
/// (always the same ones). A machine without either has no members but itself.
std::vector<MachineModel> ensemble_of(const MachineModel& machine, unsigned count);

}  // namespace muster::sim
