// SPDX-License-Identifier: BSD-3-Clause
// `muster sim`: questions to machines that are not here.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "barrier/registry.hpp"
#include "bench/stop.hpp"
#include "capi/plan.hpp"
#include "cli/command.hpp"
#include "cli/named_machine.hpp"
#include "cli/output.hpp"
#include "cli/sim_common.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"
#include "sim/pair_matrix.hpp"

namespace muster {

void MachineChoice::add_to(Command& command, const std::string& otherwise) {
  Option* const option = add_machine_option(command, name, "--machine", otherwise);
  if (otherwise.empty()) option->required();
  add_changes_to(command);
}

void MachineChoice::add_changes_to(Command& command) {
  std::vector<std::string> mechanisms;
  for (int i = 0; i < sim::mechanism_count; ++i)
    mechanisms.emplace_back(sim::mechanism_name(static_cast<sim::Mechanism>(i)));
  command
      .add_option("--without", without,
                  fmt::format("Switch mechanisms of the model off, a list of: {}",
                              fmt::join(mechanisms, ", ")))
      ->words(mechanisms)
      ->delimiter(',');
  command
      .add_option("--set", set,
                  "Change parameters or latencies of the machine, a list of NAME=NUMBER "
                  "(memory-far=122, latency-MACHINE=90)")
      ->delimiter(',');
}

sim::MachineModel MachineChoice::load(const std::string& of) const {
  NamedMachine named = named_machine(of);
  return changed(
      named.model ? std::move(*named.model)
                  : sim::assumed_machine(named.topology, topology_statement(of, named.topology)));
}

sim::MachineModel MachineChoice::changed(sim::MachineModel machine) const {
  for (const std::string& change : set) {
    const std::size_t equals = change.find('=');
    double value = 0;
    const char* const end = change.data() + change.size();
    const char* const number = change.data() + std::min(equals, change.size() - 1) + 1;
    const auto read = std::from_chars(number, end, value);
    if (equals == std::string::npos || read.ptr != end || read.ec != std::errc{}) {
      throw Error(Status::invalid, "--set: \"" + change + "\" is no NAME=NUMBER");
    }
    const std::string key = change.substr(0, equals);
    const std::string fault = machine.fault(key, value);  // throws for a name that is none
    if (!fault.empty()) throw Error(Status::invalid, "--set: " + fault);
    machine.fix(key, value, "assumed: --set");
  }
  for (const std::string& mechanism : without) {
    machine.mechanisms = machine.mechanisms.without(sim::parse_mechanism(mechanism));
  }
  if (const std::string all = changes(); !all.empty()) {
    machine.about += (machine.about.empty() ? "changed: " : "; changed: ") + all;
  }
  return machine;
}

std::string MachineChoice::changes() const {
  return (set.empty() ? "" : fmt::format("--set {}", fmt::join(set, ","))) +
         (set.empty() || without.empty() ? "" : " ") +
         (without.empty() ? "" : fmt::format("--without {}", fmt::join(without, ",")));
}

nlohmann::ordered_json MachineChoice::settings() const {
  return {{"version", muster_version()}, {"machine", name}, {"set", set}, {"without", without}};
}

nlohmann::ordered_json MachineChoice::settings(const sim::MachineModel& machine,
                                               const sim::Effort& effort) const {
  nlohmann::ordered_json json = settings();
  json["members"] = sim::ensemble_of(machine, effort.members).size() - 1;
  json["seeds"] = effort.seeds;
  json["first_seed"] = effort.seed;
  json["warm_up"] = effort.warm_up;
  json["window"] = effort.measured;
  return json;
}

void TeamChoice::add_to(Command& command, const std::string& ranks_default,
                        const std::string& map_by_default) {
  command
      .add_option("--ranks", ranks, fmt::format("How many, a list (default: {})", ranks_default))
      ->delimiter(',')
      ->check(Range(1U, 4096U));
  command.add_option("--map-by", map_by, "How ranks go to cores: core, numa, socket; a list")
      ->words(mapping_names())
      ->delimiter(',')
      ->default_str(map_by_default);
}

std::vector<std::pair<unsigned, Mapping>> TeamChoice::on(const sim::MachineModel& machine) const {
  const std::vector<unsigned> all = {static_cast<unsigned>(machine.shape->cores().size())};
  std::vector<std::pair<unsigned, Mapping>> teams;
  for (const unsigned count : ranks.empty() ? all : ranks) {
    for (const std::string& name : map_by) {
      const Mapping mapping = parse_mapping(name);
      static_cast<void>(sim::cores_of_ranks(machine, machine.shape->map_ranks(mapping, count)));
      teams.emplace_back(count, mapping);
    }
  }
  return teams;
}

sim::MachineModel as_written_to(const std::string& path, sim::MachineModel machine) {
  namespace fs = std::filesystem;
  if (path.empty() || !machine.topology.starts_with("file ")) return machine;
  const fs::path folder = fs::weakly_canonical(fs::absolute(path)).parent_path();
  const fs::path file = fs::weakly_canonical(topology_spec(machine));
  const fs::path inside = file.lexically_relative(folder);
  if (*inside.begin() != "..") machine.topology = "file " + inside.string();
  return machine;
}

void write_machine(const std::string& path, const sim::MachineModel& machine) {
  const std::string text = sim::format_machine(machine);
  static_cast<void>(
      sim::parse_machine(text, path, std::filesystem::path(path).parent_path().string()));
  write_run(path, text);
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

std::string choice_on(const sim::MachineModel& machine, unsigned ranks, Mapping map_by) {
  const std::string topology = topology_spec(machine);
  muster_options options;
  muster_options_init(&options);
  options.participants = ranks;
  options.topology = topology.c_str();
  options.map_by = mapping_name(map_by).data();  // of a literal
  wait_as_on(machine, options);
  const MachineCosts costs = sim::costs_of(machine);
  return make_plan(options, &costs).algorithm.text();
}

sim::Progress shown_on(ProgressLine& line, std::string what) {
  return [&line, what = std::move(what)](std::size_t done, std::size_t of) {
    line.show(static_cast<double>(done) / static_cast<double>(of),
              fmt::format("{}, run {} of {}", what, done, of));
    return !bench::stop_asked();
  };
}

nlohmann::ordered_json sim_rows(const sim::MachineModel& machine,
                                const nlohmann::ordered_json& settings,
                                const std::vector<sim::Predicted>& rows) {
  nlohmann::ordered_json json;
  json["machine"] = machine.name;
  json["about"] = machine.about;
  json["predicted"] = true;
  if (!settings.is_null()) {
    json["settings"] = settings;
    json["stopped"] = bench::stop_asked();
  }
  json["results"] = nlohmann::ordered_json::array();
  for (const sim::Predicted& row : rows) {
    json["results"].push_back({{"algorithm", row.asked()},
                               {"machine", machine.name},
                               {"ranks", row.query.ranks},
                               {"map_by", mapping_name(row.query.map_by)},
                               {"latency_us", row.prediction.latency_us},
                               {"latency_us_low", row.prediction.latency_us_low},
                               {"latency_us_high", row.prediction.latency_us_high},
                               {"exit_skew_us", row.prediction.exit_skew_us},
                               {"exit_skew_us_low", row.prediction.exit_skew_us_low},
                               {"exit_skew_us_high", row.prediction.exit_skew_us_high}});
    if (row.by_auto) json["results"].back()["chosen"] = row.query.algorithm;
  }
  return json;
}

std::string sim_rows_csv(const sim::MachineModel& machine,
                         const std::vector<sim::Predicted>& rows) {
  std::string text =
      "algorithm,machine,ranks,map_by,latency_us,latency_us_low,latency_us_high,exit_skew_us,"
      "predicted,chosen\n";
  for (const sim::Predicted& row : rows) {
    text +=
        fmt::format("{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},true,{}\n", row.asked(), machine.name,
                    row.query.ranks, mapping_name(row.query.map_by), row.prediction.latency_us,
                    row.prediction.latency_us_low, row.prediction.latency_us_high,
                    row.prediction.exit_skew_us, row.by_auto ? row.query.algorithm : "");
  }
  return text;
}

std::string sim_rows_text(const sim::MachineModel& machine, std::vector<sim::Predicted> rows) {
  std::string text = wrapped(fmt::format("{}: {}\nPredicted by the model, not measured.\nFor {}",
                                         machine.name, machine.about, setting_of(machine))) +
                     "\n";
  const auto us = [](const sim::Predicted& row) { return row.prediction.latency_us; };
  for (auto left = rows.begin(); left != rows.end();) {
    const sim::Query team = left->query;
    const auto end = std::stable_partition(left, rows.end(), [&](const sim::Predicted& row) {
      return row.query.ranks == team.ranks && row.query.map_by == team.map_by;
    });
    std::stable_sort(left, end, [&](const auto& a, const auto& b) { return us(a) < us(b); });
    text += fmt::format("\n{} by {}, * is the fastest\n{:>7}  {:<16}  {:>9}    {}\n",
                        counted(team.ranks, "ranks"), mapping_name(team.map_by), "us", "interval",
                        "exit skew", "algorithm");
    std::string as_fast;
    for (const double best_us = us(*left); left != end; ++left) {
      const sim::Prediction& p = left->prediction;
      const std::string name = (left->by_auto ? "auto: " : "") + left->query.algorithm;
      if (us(*left) != best_us && us(*left) <= (1 + sim::matters) * best_us) {
        as_fast.append(as_fast.empty() ? "" : ", ").append(name);
      }
      text += fmt::format("{:>7.2f}  {:>6.2f} to {:<6.2f}  {:>9.2f}  {} {}{}\n", p.latency_us,
                          p.latency_us_low, p.latency_us_high, p.exit_skew_us,
                          us(*left) == best_us ? '*' : ' ', name.size() > 39 ? "\n    " : "", name);
    }
    if (!as_fast.empty()) text += wrapped("Not told apart from the fastest: " + as_fast, 2) + "\n";
  }
  return text;
}

Command* add_sim(Command& app) {
  Command* const sim = app.add_subcommand(
      "sim", "Predict what barriers and locks do on servers that are not here, by modelling them");
  sim->require_subcommand(1);
  return sim;
}

}  // namespace muster
