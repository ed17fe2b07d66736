// SPDX-License-Identifier: BSD-3-Clause
// What the commands around the modelled machine share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/machine_model.hpp"
#include "sim/measurements.hpp"
#include "sim/predict.hpp"

namespace CLI {
class App;
}

namespace muster {

/// `--machine`, `--without` and `--set`.
struct MachineChoice {
  std::string name;
  std::vector<std::string> without;
  std::vector<std::string> set;

  void add_to(CLI::App& command);
  /// `--without` and `--set` alone, for commands that know their machines.
  void add_changes_to(CLI::App& command);
  sim::MachineModel load() const { return load(name); }
  sim::MachineModel load(const std::string& machine) const;
};

struct SimRow {
  sim::Query query;
  sim::Prediction prediction;
};

/// One JSON object with `machine` and the rows in `results`.
std::string sim_rows_json(const sim::MachineModel& machine, const std::vector<SimRow>& rows);
std::string sim_rows_csv(const sim::MachineModel& machine, const std::vector<SimRow>& rows);
std::string sim_rows_text(const sim::MachineModel& machine, const std::vector<SimRow>& rows);

/// "all", or what is asked for, each name checked. Throws Error(unknown_name).
std::vector<std::string> algorithms_for(const sim::MachineModel& machine,
                                        const std::vector<std::string>& asked);

/// Throws Error(system), naming the file.
void write_text(const std::string& file, const std::string& text);

/// Makes the folder, and its parents. Throws Error(system).
void make_folder(const std::string& folder);

/// Runs a script of plot/ on a result file; says on standard error why there is no picture, if
/// there is none.
bool plot_sim(const std::string& data, const std::string& folder,
              const std::string& name = "plot_sim.py");

/// Says on standard error now and then how much is done and how long it will take.
std::function<void(std::size_t done, std::size_t of)> progress_of(const std::string& what);

// The subcommands of `muster sim`.
void add_sim_barrier(CLI::App& sim);
void add_sim_fit(CLI::App& sim);
void add_sim_validate(CLI::App& sim);
void add_sim_lock(CLI::App& sim);
void add_sim_reproduce(CLI::App& sim);

}  // namespace muster
