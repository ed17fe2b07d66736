// SPDX-License-Identifier: BSD-3-Clause
// `--machine`, of all commands that can be asked about a machine that is not here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/muster.h"
#include "sim/machine_model.hpp"
#include "topology/topology.hpp"

namespace muster {

class Command;
class Option;

struct NamedMachine {
  Topology topology;
  /// What is known besides: of shipped machines and description files.
  std::optional<sim::MachineModel> model;

  std::string title() const { return model ? model->name : topology.source(); }
};

/// A shipped machine's name, a description file, hwloc's XML file or synthetic description; empty:
/// $MUSTER_TOPOLOGY, else this machine. Throws Error(invalid), saying what there is.
NamedMachine named_machine(const std::string& name);

/// Says on standard error which pairs are nearer than those that share a narrower level.
void note_nearer_outside(const std::string& source,
                         const std::vector<sim::LatencyClass>& bottom_up);

/// A described machine's topology as muster_options.topology has it.
std::string topology_spec(const sim::MachineModel& machine);

/// Who polls as seldom as that machine's ranks makes an MPI's progress in between.
bool makes_progress(const sim::MachineModel& machine);
/// Whose waits the machine's costs are.
std::string setting_of(const sim::MachineModel& machine);
void wait_as_on(const sim::MachineModel& machine, muster_options& options);

/// hwloc's synthetic description, or the name of its XML file, as a machine file has it.
std::string topology_statement(const std::string& spec, const Topology& topology);

constexpr const char* machine_option = "--machine,--topology";
/// `otherwise`: what it is if not given.
Option* add_machine_option(Command& command, std::string& name, const std::string& names,
                           const std::string& otherwise =
                               "a file or synthetic description in "
                               "$MUSTER_TOPOLOGY, else this machine");

}  // namespace muster
