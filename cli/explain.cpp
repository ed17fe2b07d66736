// SPDX-License-Identifier: BSD-3-Clause
// `muster explain`: what a barrier with these options would be, and why, without running it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "capi/explain.hpp"
#include "cli/command.hpp"
#include "cli/named_machine.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"
#include "muster/muster.h"
#include "topology/topology.hpp"
#ifdef MUSTER_WITH_SIM
#include "cli/sim_common.hpp"
#include "sim/pair_matrix.hpp"
#include "sim/waits.hpp"
#endif

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  unsigned participants = 2;
  std::string algorithm = "auto";
  std::string wait = "auto";
  std::string machine;
#ifdef MUSTER_WITH_SIM
  MachineChoice changes;
#endif
  std::string map_by = "none";
  std::vector<std::string> bindings;
  bool shared = false;
  bool split = false;
  bool json = false;
  std::string output;
};

/// What stands beside the names of the lines, which are 14 columns wide, wrapped.
std::string in_columns(const std::string& text) {
  constexpr std::size_t kNames = 14;
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    const bool is_fact = line.size() > kNames && line[kNames - 1] == ' ' && line[0] != ' ';
    result += is_fact ? line.substr(0, kNames) + wrapped(line.substr(kNames), kNames) : line;
    result += "\n";
  }
  return result;
}

constexpr const char* where_they_sit =
    "the model has to know where all sit: say --map-by or --bindings";

bool all_bound(const Options& asked, const std::vector<PuSet>& bindings) {
  if (bindings.empty()) return asked.map_by != "none";
  return std::none_of(bindings.begin(), bindings.end(),
                      [](const PuSet& pus) { return pus.empty(); });
}

/// Why the model cannot tell what a barrier takes there; empty if it can.
std::string unpredictable(const Topology& topology, const Options& asked,
                          const std::vector<PuSet>& bindings) {
#ifndef MUSTER_WITH_SIM
  return "this program was built without the model";
#endif
  const std::size_t cores = topology.cores().size();
  if (asked.participants > cores) {
    return fmt::format("the model gives each participant a core, and there are {}", cores);
  }
  if (!all_bound(asked, bindings)) return where_they_sit;
  std::set<unsigned> taken;
  for (const PuSet& pus : bindings) {
    if (!taken.insert(topology.core_of(pus.first())).second) {
      return "two participants share a core: the first one of their bindings";
    }
  }
  return "";
}

#ifdef MUSTER_WITH_SIM
sim::Query query_of(const Plan& plan, const Options& asked, const std::vector<PuSet>& bindings) {
  return {plan.algorithm.text(), plan.participants,
          bindings.empty() ? parse_mapping(asked.map_by) : Mapping::core, bindings};
}

/// Who waits for whom in an episode, for plot_waits.py; on a machine of which only the topology is
/// known with latencies as on another one.
Json waits_json(const std::optional<NamedMachine>& machine, const Plan& plan, const Options& asked,
                const std::vector<PuSet>& bindings) {
  const Topology topology =
      machine ? machine->topology : Topology::from_spec_or_environment("", Topology::Cpus::of_host);
  sim::MachineModel model =
      machine ? *machine->model
              : sim::assumed_machine(topology, sim::synthetic_description(topology, "--machine"));
  model.shape = topology;
  const sim::Query query = query_of(plan, asked, bindings);
  const sim::Waits waits = sim::waits_of(model, query);
  Json json;
  json["predicted"] = true;
  json["machine"] = model.guessed.empty() ? model.name : topology.source() + ", costs assumed";
  json["algorithm"] = query.algorithm;
  const std::vector<Level> levels = topology.active_levels().levels;
  const std::vector<PuSet> where =
      bindings.empty() ? topology.map_ranks(query.map_by, query.ranks) : bindings;
  json["ranks"] = Json::array();
  for (std::size_t rank = 0; rank < where.size(); ++rank) {
    const unsigned unit = levels.empty() ? 0 : levels.front().unit_of_binding(where[rank]);
    json["ranks"].push_back(
        {{"unit", levels.empty()  ? Json("MACHINE")
                  : is_unit(unit) ? Json(fmt::format("{} {}", levels.front().name, unit))
                                  : Json("no one " + levels.front().name)},
         {"arrives_ns", waits.inside_ns[rank].first},
         {"leaves_ns", waits.inside_ns[rank].second}});
  }
  json["waits"] = Json::array();
  for (const sim::Wait& wait : waits.waits) {
    json["waits"].push_back({{"rank", wait.by},
                             {"for", wait.of},
                             {"told_ns", wait.told_ns},
                             {"heard_ns", wait.heard_ns}});
  }
  return json;
}
#endif

/// What the barrier of `plan` takes on the modelled machine, and the three fastest others that
/// could do it; and what `auto` takes, if that is another one.
void predict([[maybe_unused]] const sim::MachineModel& model, [[maybe_unused]] const Plan& plan,
             [[maybe_unused]] const Plan& by_auto, [[maybe_unused]] const Options& asked,
             [[maybe_unused]] const std::vector<PuSet>& where, [[maybe_unused]] std::string& text,
             [[maybe_unused]] Json& row) {
#ifdef MUSTER_WITH_SIM
  const auto fits = [&](const Algorithm& other) {
    return !plan.split || traits_of(other.name).splits;
  };
  std::vector<sim::Predicted> rows = sim::beside_best(model, query_of(plan, asked, where), 3, fits);
  const std::string chosen = by_auto.algorithm.text();
  if (std::none_of(rows.begin(), rows.end(),
                   [&](const sim::Predicted& each) { return each.query.algorithm == chosen; })) {
    rows.push_back(sim::beside_best(model, query_of(by_auto, asked, where), 0, fits).front());
    rows.back().by_auto = true;
    std::stable_sort(rows.begin() + 1, rows.end(), [](const auto& a, const auto& b) {
      return a.prediction.latency_us < b.prediction.latency_us;
    });
  }
  const double own_us = rows.front().prediction.latency_us;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const sim::Prediction& p = rows[n].prediction;
    text += fmt::format(
        "{:<14}{}{:.2f} us ({:.2f} to {:.2f}), exit skew {:.2f} us ({:.2f} to {:.2f})\n",
        n == 0                  ? "predicted"
        : p.latency_us < own_us ? "faster"
                                : "runner-up",
        n == 0 ? "" : (rows[n].by_auto ? "auto, " : "") + rows[n].query.algorithm + ": predicted ",
        p.latency_us, p.latency_us_low, p.latency_us_high, p.exit_skew_us, p.exit_skew_us_low,
        p.exit_skew_us_high);
  }
  row["predicted"] = sim_rows(model, {}, rows).at("results");
#endif
}

void explain(const Options& asked) {
  std::optional<NamedMachine> machine;  // none: the barrier would be one of this machine
  if (!asked.machine.empty()) machine = named_machine(asked.machine);
  const std::string title = machine ? machine->title() : "";
#ifdef MUSTER_WITH_SIM
  if (machine) {
    machine->model =
        machine->model ? asked.changes.changed(*machine->model) : asked.changes.load(asked.machine);
  } else if (!asked.changes.set.empty() || !asked.changes.without.empty()) {
    throw Error(Status::invalid, "--set and --without change a --machine, and none is given");
  }
#endif
  muster_options options;
  muster_options_init(&options);
  options.participants = asked.participants;
  options.algorithm = asked.algorithm.c_str();
  options.wait = asked.wait.c_str();
  const std::string topology =
      machine && machine->model ? topology_spec(*machine->model) : asked.machine;
  if (!topology.empty()) options.topology = topology.c_str();
  if (machine && machine->model) wait_as_on(*machine->model, options);
  if (asked.map_by != "none") options.map_by = asked.map_by.c_str();
  std::vector<PuSet> where;
  std::vector<std::string> texts;
  std::vector<const char*> bindings;
  if (!asked.bindings.empty()) {
    if (asked.bindings.size() != asked.participants) {
      throw Error(Status::invalid,
                  fmt::format("--bindings takes one binding for each of {} participants, none for "
                              "an unbound one; here are {}",
                              asked.participants, asked.bindings.size()));
    }
    // Whatever the algorithm makes of them: PUs that do not exist are a mistake.
    const Topology all = Topology::from_spec_or_environment(topology, Topology::Cpus::of_host);
    where = all.read_bindings(asked.bindings);
    for (const PuSet& pus : where) texts.push_back(pus.empty() ? "" : pus.to_string());
    for (const std::string& text : texts) bindings.push_back(text.c_str());
    options.bindings = bindings.data();
  }
  if (asked.shared || options.progress != nullptr) options.flags |= MUSTER_SHARED;
  if (asked.split) options.flags |= MUSTER_SPLIT;

  const ResultFiles files{asked.output, "explain", "plot_waits.py", ""};
  const std::string why_not =
      machine || !asked.output.empty()
          ? unpredictable(machine ? machine->topology
                                  : Topology::from_spec_or_environment("", Topology::Cpus::of_host),
                          asked, where)
          : "";
  if (!asked.output.empty() && !why_not.empty()) {
    throw Error(Status::invalid, "--output: " + why_not);
  }
  files.prepare();
  std::optional<MachineCosts> costs;
  if (machine && machine->model) {
    costs = sim::costs_of(*machine->model);
  } else if (machine) {
    costs = costs_for(machine->topology, false);
  }
  const Plan plan = make_plan(options, costs ? &*costs : nullptr);
  const BlockLayout layout = Block::lay_out(plan);
  std::string text = explain_as_text(plan, layout);
  Json row = Json::parse(explain_as_json(plan, layout));
  if (machine) {
    const std::string about = machine->model ? ": " + machine->model->about : "";
    const std::string setting = machine->model ? setting_of(*machine->model) : "";
    text = fmt::format("machine       {}{}\n", title, about) +
           (setting.empty() ? "" : fmt::format("setting       {}\n", setting)) + text;
    row["machine"] = title;
    if (!setting.empty()) row["setting"] = setting;
    if (why_not.empty()) {
      options.algorithm = "auto";
      predict(*machine->model, plan, make_plan(options, &*costs), asked, where, text, row);
    } else {
      text += fmt::format("predicted     nothing: {}\n", why_not);
    }
  }
  Json json;
#ifdef MUSTER_WITH_SIM
  if (machine) {
    json["settings"] = machine->model ? asked.changes.settings(*machine->model, sim::Effort{})
                                      : asked.changes.settings();
    json["settings"]["machine"] = asked.machine;
  }
#endif
  json["results"].push_back(std::move(row));
  const std::string said = asked.json ? format_json(json) : in_columns(text);
#ifdef MUSTER_WITH_SIM
  if (!asked.output.empty()) json["waits"] = waits_json(machine, plan, asked, where);
#endif
  files.write(format_json(json), "", said);
}

}  // namespace

void add_explain(Command& app) {
  auto asked = std::make_shared<Options>();
  Command* command = app.add_subcommand(
      "explain",
      "What a barrier with these options would be: algorithm, groups, waiting, memory, and why");
  command
      ->add_option("-p,--participants", asked->participants,
                   "Ranks or threads that meet at the barrier")
      ->capture_default_str();
  command->add_option("-a,--algorithm", asked->algorithm, "A name that `muster list` shows")
      ->listed({"algorithm"})
      ->capture_default_str();
  command->add_option("-w,--wait", asked->wait, "How they wait: a name that `muster list` shows")
      ->listed({"wait"})
      ->capture_default_str();
  add_machine_option(*command, asked->machine, std::string("-t,") + machine_option);
#ifdef MUSTER_WITH_SIM
  asked->changes.add_changes_to(*command);
#endif
  command
      ->add_option("-m,--map-by", asked->map_by,
                   "Rank i is bound by core, numa or socket; none: not bound")
      ->listed({"mapping"})
      ->capture_default_str();
  command->add_option(
      "-b,--bindings", asked->bindings,
      "One for each rank: PUs (0-3,8), a PMIx locality string (SK0:L31:CR32:NM1), or none");
  command->add_flag("--shared", asked->shared, "The participants are processes");
  command->add_flag("--split", asked->split, "arrive and depart are called apart");
  command->add_flag("--json", asked->json, "One JSON object with an array `results`");
#ifdef MUSTER_WITH_SIM
  command->add_option("--output", asked->output,
                      "Folder for explain.json, and a picture (PNG and SVG) of who waits for whom, "
                      "as the model has it");
#endif
  command->callback([asked] { explain(*asked); });
}

}  // namespace muster
