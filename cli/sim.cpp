// SPDX-License-Identifier: BSD-3-Clause
// `muster sim`: questions to machines that are not here.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "barrier/registry.hpp"
#include "machine/error.hpp"
#include "sim_common.hpp"
#include "subcommands.hpp"

namespace muster {

void MachineChoice::add_to(CLI::App& command) {
  std::string known;
  for (const auto& [shipped, text] : sim::shipped_machines()) {
    known.append(known.empty() ? "" : ", ").append(shipped);
  }
  command.add_option("--machine", name, "A machine's description file, or one of: " + known)
      ->required();
  add_changes_to(command);
}

void MachineChoice::add_changes_to(CLI::App& command) {
  std::string mechanisms;
  for (int i = 0; i < sim::mechanism_count; ++i) {
    mechanisms.append(mechanisms.empty() ? "" : ", ")
        .append(sim::mechanism_name(static_cast<sim::Mechanism>(i)));
  }
  command
      .add_option("--without", without,
                  "Switch mechanisms of the model off, a list of: " + mechanisms)
      ->delimiter(',');
  command
      .add_option("--set", set,
                  "Change parameters or latencies of the machine, a list of NAME=NUMBER "
                  "(memory-far=122, latency-MACHINE=90)")
      ->delimiter(',');
}

sim::MachineModel MachineChoice::load(const std::string& of) const {
  sim::MachineModel machine = sim::load_machine(of);
  for (const std::string& change : set) {
    const std::size_t equals = change.find('=');
    double value = 0;
    const char* const end = change.data() + change.size();
    const char* const number = change.data() + std::min(equals, change.size() - 1) + 1;
    if (equals == std::string::npos || std::from_chars(number, end, value).ptr != end ||
        number == end) {
      throw Error(Status::invalid, "--set: \"" + change + "\" is no NAME=NUMBER");
    }
    const std::string key = change.substr(0, equals);
    static_cast<void>(machine.value(key));  // throws for a name that is none
    machine.set(key, value, "assumed: --set");
  }
  for (const std::string& mechanism : without) {
    machine.mechanisms = machine.mechanisms.without(sim::parse_mechanism(mechanism));
  }
  return machine;
}

std::vector<std::string> algorithms_for(const sim::MachineModel& machine,
                                        const std::vector<std::string>& asked) {
  std::vector<std::string> names;
  for (const std::string& name : asked) {
    if (name == "all") {
      for (std::string& each : sim::all_algorithms(machine)) names.push_back(std::move(each));
      continue;
    }
    const Algorithm algorithm = sim::parse_modelled(name);
    if (algorithm.uses_groups()) static_cast<void>(parse_level_mask(algorithm.levels));
    names.push_back(name);
  }
  return names;
}

std::string sim_rows_json(const sim::MachineModel& machine, const std::vector<SimRow>& rows) {
  nlohmann::ordered_json json;
  json["machine"] = machine.name;
  json["about"] = machine.about;
  json["results"] = nlohmann::ordered_json::array();
  for (const SimRow& row : rows) {
    json["results"].push_back({{"algorithm", row.query.algorithm},
                               {"machine", machine.name},
                               {"ranks", row.query.ranks},
                               {"map_by", mapping_name(row.query.map_by)},
                               {"latency_us", row.prediction.latency_us},
                               {"latency_us_low", row.prediction.latency_us_low},
                               {"latency_us_high", row.prediction.latency_us_high}});
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string sim_rows_csv(const sim::MachineModel& machine, const std::vector<SimRow>& rows) {
  std::string text = "algorithm,machine,ranks,map_by,latency_us,latency_us_low,latency_us_high\n";
  for (const SimRow& row : rows) {
    text += fmt::format("{},{},{},{},{:.3f},{:.3f},{:.3f}\n", row.query.algorithm, machine.name,
                        row.query.ranks, mapping_name(row.query.map_by), row.prediction.latency_us,
                        row.prediction.latency_us_low, row.prediction.latency_us_high);
  }
  return text;
}

std::string sim_rows_text(const sim::MachineModel& machine, const std::vector<SimRow>& rows) {
  std::string text = fmt::format("{}: {}\n\n{:<26} {:>6}  {:<7} {:>9}   {}\n", machine.name,
                                 machine.about, "algorithm", "ranks", "map by", "us", "interval");
  for (const SimRow& row : rows) {
    text += fmt::format("{:<26} {:>6}  {:<7} {:>9.2f}   {:.2f} to {:.2f}\n", row.query.algorithm,
                        row.query.ranks, mapping_name(row.query.map_by), row.prediction.latency_us,
                        row.prediction.latency_us_low, row.prediction.latency_us_high);
  }
  return text;
}

void write_text(const std::string& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  stream.close();
  if (!stream) {
    throw Error(Status::system, file + " cannot be written: check the folder and the space there");
  }
}

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(Status::system, folder + " cannot be made: " + error.message());
}

std::function<void(std::size_t, std::size_t)> progress_of(const std::string& what) {
  using Clock = std::chrono::steady_clock;
  return
      [what, begin = Clock::now(), last = Clock::now()](std::size_t done, std::size_t of) mutable {
        const auto now = Clock::now();
        if (now - last < std::chrono::seconds(5) || done == 0) return;
        last = now;
        const double passed_s = std::chrono::duration<double>(now - begin).count();
        fmt::print(stderr, "muster: {:3.0f} %, {:.0f} s left: {}, run {} of {}\n",
                   100.0 * static_cast<double>(done) / static_cast<double>(of),
                   passed_s * static_cast<double>(of - done) / static_cast<double>(done), what,
                   done, of);
      };
}

bool plot_sim(const std::string& data, const std::string& folder, const std::string& name) {
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  std::string script;
  for (const auto& path : {program.parent_path().parent_path() / "share/muster" / name,
                           std::filesystem::path(MUSTER_SOURCE_DIR) / "plot" / name}) {
    if (script.empty() && std::filesystem::exists(path, none)) script = path.string();
  }
  if (script.empty()) {
    fmt::print(stderr, "muster: no plot: {} was not found\n", name);
    return false;
  }
  // Debian's matplotlib belongs to Debian's Python, which need not be the first on PATH.
  const char* const python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
  const pid_t child = fork();
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execlp(python, python, script.c_str(), data.c_str(), folder.c_str(),
           static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = -1;
  if (child > 0) waitpid(child, &status, 0);
  if (status == 0) return true;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  fmt::print(stderr, "muster: no plot: {}\n",
             code == 3     ? "install python3-matplotlib"
             : code == 127 ? "install python3 and python3-matplotlib"
                           : "see above");
  return false;
}

void add_sim(CLI::App& app) {
  CLI::App* const sim = app.add_subcommand(
      "sim", "Predict what barriers and locks do on servers that are not here, by modelling them");
  sim->require_subcommand(1);
  add_sim_barrier(*sim);
  add_sim_fit(*sim);
  add_sim_validate(*sim);
  add_sim_lock(*sim);
  add_sim_reproduce(*sim);
}

}  // namespace muster
