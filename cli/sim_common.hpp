// SPDX-License-Identifier: BSD-3-Clause
// What the commands around the modelled machine share.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/machine_model.hpp"
#include "sim/measurements.hpp"
#include "sim/predict.hpp"

namespace muster {

class Command;
class ProgressLine;

/// `--machine`, `--without` and `--set`.
struct MachineChoice {
  std::string name;
  std::vector<std::string> without;
  std::vector<std::string> set;

  /// `otherwise`: what stands for `--machine`; empty: it has to be given.
  void add_to(Command& command, const std::string& otherwise = "");
  /// `--without` and `--set` alone, for commands that know their machines.
  void add_changes_to(Command& command);
  sim::MachineModel load() const { return load(name); }
  sim::MachineModel load(const std::string& machine) const;
  /// As `--without` and `--set` say; so does its `about` then.
  sim::MachineModel changed(sim::MachineModel machine) const;
  /// What they say, as a shell takes it; empty if nothing.
  std::string changes() const;
  /// How something was predicted, for the JSON's `settings`: by which version, of what.
  nlohmann::ordered_json settings() const;
  nlohmann::ordered_json settings(const sim::MachineModel& machine,
                                  const sim::Effort& effort) const;
};

/// As that file has it: a topology's file in or below its folder is named from there, so that both
/// can be moved.
sim::MachineModel as_written_to(const std::string& path, sim::MachineModel machine);

/// A machine's description file, told on standard error. Throws Error(invalid) for what could not
/// be read back.
void write_machine(const std::string& path, const sim::MachineModel& machine);

/// `--ranks` and `--map-by`.
struct TeamChoice {
  std::vector<unsigned> ranks;  ///< empty: one a core
  std::vector<std::string> map_by{"core"};

  /// The defaults, in words.
  void add_to(Command& command, const std::string& ranks_default = "one per core",
              const std::string& map_by_default = "core");
  /// How many, mapped how: each of both. Throws Error(unknown_name), or Error(invalid) where there
  /// are fewer cores.
  std::vector<std::pair<unsigned, Mapping>> on(const sim::MachineModel& machine) const;
};

/// Runs of `what` as they end. Where Ctrl-C only asks to stop (bench/stop.hpp), no more are begun.
sim::Progress shown_on(ProgressLine& line, std::string what);

/// One JSON object with `machine`, unless they are null the `settings`, and the rows in `results`.
nlohmann::ordered_json sim_rows(const sim::MachineModel& machine,
                                const nlohmann::ordered_json& settings,
                                const std::vector<sim::Predicted>& rows);
std::string sim_rows_csv(const sim::MachineModel& machine, const std::vector<sim::Predicted>& rows);
/// For people: sorted by latency within each team.
std::string sim_rows_text(const sim::MachineModel& machine, std::vector<sim::Predicted> rows);

/// What `auto` is there, by name.
std::string choice_on(const sim::MachineModel& machine, unsigned ranks, Mapping map_by);

/// "all", or what is asked for, each name checked. Throws Error(unknown_name).
std::vector<std::string> algorithms_for(const sim::MachineModel& machine,
                                        const std::vector<std::string>& asked);

}  // namespace muster
