// SPDX-License-Identifier: BSD-3-Clause
#include "cli/named_machine.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "machine/error.hpp"
#include "topology/text_file.hpp"

namespace muster {
namespace {

std::string shipped_names() {
  std::string names;
  for (const auto& [name, text] : sim::shipped_machines()) {
    names.append(names.empty() ? "" : ", ").append(name);
  }
  return names;
}

/// Shipped, or a file that says so in its first statement.
bool is_described(const std::string& name) {
  for (const auto& [shipped, text] : sim::shipped_machines()) {
    if (name == shipped) return true;
  }
  if (name.ends_with(".machine")) return true;
  if (name.find('/') == std::string::npos) return false;
  const std::string text = read_text_file(name, "machine file");
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error(Status::invalid, "machine file '" + name + "' is empty");
  }
  std::istringstream lines(text);
  std::string first = "#";
  while ((first.empty() || first[0] == '#') && std::getline(lines, first)) {
  }
  return first.starts_with("muster-machine");
}

}  // namespace

NamedMachine named_machine(const std::string& name) {
  if (name.empty()) return {Topology::from_spec_or_environment(""), {}};
  if (is_described(name)) {
    sim::MachineModel model = sim::load_machine(name);
    note_nearer_outside(name, model.latencies);
    return {*model.shape, model};
  }
  try {
    return {Topology::from_spec(name), {}};
  } catch (const Error& error) {
    if (error.code() != Status::invalid || name.find('/') != std::string::npos) throw;
    throw Error(error.code(), fmt::format("{}; or a machine's description file; or one of: {}",
                                          error.what(), shipped_names()));
  }
}

void note_nearer_outside(const std::string& source,
                         const std::vector<sim::LatencyClass>& bottom_up) {
  constexpr double clearly = 1.1;  // less is chance, where nothing tells the two apart
  for (std::size_t n = 1; n < bottom_up.size(); ++n) {
    const sim::LatencyClass& inner = bottom_up[n - 1];
    const sim::LatencyClass& outer = bottom_up[n];
    if (outer.ns * clearly >= inner.ns) continue;
    note("muster: {}: pairs of {}, {:.6g} ns, are nearer than those of {}, {:.6g} ns: is it so?\n",
         printable(source), outer.name(), outer.ns, inner.name(), inner.ns);
  }
}

std::string topology_spec(const sim::MachineModel& machine) {
  const std::string file = "file ";
  return machine.topology.substr(machine.topology.starts_with(file) ? file.size() : 0);
}

bool makes_progress(const sim::MachineModel& machine) {
  constexpr double least_of_mpi_ns = 100;
  return machine.parameters.poll_turn_ns >= least_of_mpi_ns;
}

std::string setting_of(const sim::MachineModel& model) {
  const sim::Parameters& p = model.parameters;
  const std::string costs =
      fmt::format("{:.5g} ns a call, {:.5g} between two looks", p.call_ns, p.poll_turn_ns);
  if (!makes_progress(model)) return "threads: " + costs;
  return "ranks of an MPI, which make its progress: " + costs +
         "; for threads say --set call=5,poll-turn=10";
}

void wait_as_on(const sim::MachineModel& machine, muster_options& options) {
  if (makes_progress(machine)) options.progress = [](void*) { return 0; };
}

std::string topology_statement(const std::string& spec, const Topology& topology) {
  const bool file = !topology.source().starts_with("synthetic ");
  return file ? "file " + std::filesystem::absolute(spec).string() : spec;
}

Option* add_machine_option(Command& command, std::string& name, const std::string& names,
                           const std::string& otherwise) {
  return command
      .add_option(
          names, name,
          fmt::format("A machine's description file, hwloc's XML file or synthetic description, or "
                      "one of: {}{}",
                      shipped_names(), otherwise.empty() ? "" : " (default: " + otherwise + ")"))
      ->listed({"machine"})
      ->or_file();
}

}  // namespace muster
