// SPDX-License-Identifier: BSD-3-Clause
// `muster topo`: the levels of a machine, and the groups and leaders that ranks on it form.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "barrier/shape.hpp"
#include "cli/command.hpp"
#include "cli/named_machine.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"
#include "machine/format.hpp"
#include "topology/picture.hpp"
#include "topology/topology.hpp"

namespace muster {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string machine;
  unsigned ranks = 0;  // 0: one per core
  std::string mapping = "core";
  std::vector<std::string> bindings;
  std::string levels;
  bool json = false;
  std::string svg;
};

struct Answer {
  NamedMachine machine;
  ActiveLevels active;
  std::vector<PuSet> bindings;
  Grouping grouping;
  std::string placed_by;  // "mapped by core"
};

Answer find_groups(const Options& options) {
  const LevelMask mask = parse_level_mask(options.levels);
  const Mapping mapping = parse_mapping(options.mapping);
  NamedMachine machine = named_machine(options.machine);
  const Topology& topology = machine.topology;
  ActiveLevels active = topology.active_levels(mask);
  std::vector<PuSet> bindings;
  std::string placed_by = "bound as given";
  if (!options.bindings.empty()) {
    if (options.ranks != 0 && options.ranks != options.bindings.size()) {
      throw Error(Status::invalid,
                  fmt::format("--ranks is {}, but --bindings has {}", options.ranks,
                              counted(options.bindings.size(), "ranks")));
    }
    bindings = topology.read_bindings(options.bindings);
  } else {
    const auto cores = static_cast<unsigned>(topology.cores().size());
    bindings = topology.map_ranks(mapping, options.ranks != 0 ? options.ranks : cores);
    placed_by = fmt::format("mapped by {}", mapping_name(mapping));
  }
  Grouping grouping = group_ranks(topology.place(bindings, active));
  return {std::move(machine), std::move(active), std::move(bindings), std::move(grouping),
          std::move(placed_by)};
}

Json to_json(const Answer& answer) {
  const Topology& topology = answer.machine.topology;
  Json json;
  if (answer.machine.model) json["machine"] = answer.machine.title();
  json["topology"] = topology.source();
  json["cores"] = topology.cores().size();
  json["pus"] = topology.pus().count();
  json["pus_unusable"] = topology.unusable_pus().count();
  json["participants"] = answer.bindings.size();
  json["placed_by"] = answer.placed_by;
  json["levels"] = Json::array();
  for (const Level& level : answer.active.levels) {
    const unsigned min = level.cores_per_unit_min();
    const unsigned max = level.cores_per_unit_max();
    json["levels"].push_back({{"name", level.name},
                              {"units", level.units.size()},
                              {"cores_per_unit", max},
                              {"cores_per_unit_min", min},
                              {"cores_per_unit_max", max}});
  }
  json["dropped"] = Json::array();
  for (const DroppedLevel& level : answer.active.dropped) {
    json["dropped"].push_back({{"name", level.name}, {"reason", level.reason}});
  }
  json["groups"] = Json::array();
  std::vector<std::vector<std::string>> leads(answer.bindings.size());
  for (const GroupLevel& level : answer.grouping.tree.levels) {
    for (const Group& group : level.groups) {
      json["groups"].push_back(
          {{"level", level.name}, {"members", group.members}, {"leader", group.leader()}});
      leads[group.leader()].push_back(level.name);
    }
  }
  if (answer.grouping.status != Status::ok) json["declined"] = answer.grouping.reason;
  json["results"] = Json::array();  // a row per rank
  for (std::size_t rank = 0; rank < answer.bindings.size(); ++rank) {
    Json units = Json::object();
    for (const Level& level : answer.active.levels) {
      const unsigned unit = level.unit_of_binding(answer.bindings[rank]);
      units[level.name] = is_unit(unit) ? Json(unit) : Json(nullptr);
    }
    json["results"].push_back({{"rank", rank},
                               {"pus", answer.bindings[rank].to_string()},
                               {"units", std::move(units)},
                               {"leads", leads[rank]}});
  }
  return json;
}

std::string to_text(const Answer& answer) {
  const Topology& topology = answer.machine.topology;
  std::string text = fmt::format("{}: ", answer.machine.title());
  const Level* const packages = topology.level(LevelKind::package);
  if (packages != nullptr) text += counted(packages->units.size(), "packages") + ", ";
  text += counted(topology.numa_nodes(), "NUMA nodes");
  const Level* const numa = topology.level(LevelKind::numa);
  const std::size_t places = numa != nullptr ? numa->units.size() : 0;
  // MCDRAM over the same cores as DRAM, memory of GPUs, ...
  if (places != topology.numa_nodes()) text += " on " + counted(places, "sets") + " of cores";
  text += ", ";
  text += fmt::format("{}, {}", counted(topology.cores().size(), "cores"),
                      counted(topology.pus().count(), "PUs"));
  const PuSet& unusable = topology.unusable_pus();
  text += unusable.empty() ? ", all usable\n"
                           : fmt::format(" usable ({} offline or not allowed: {})\n",
                                         unusable.count(), unusable.to_string());
  text = wrapped(text) + "\nlevels, bottom up\n";
  for (const Level& level : answer.active.levels) {
    const unsigned min = level.cores_per_unit_min();
    const unsigned max = level.cores_per_unit_max();
    text +=
        fmt::format("  {:<8} {} of {} core{}\n", level.name, counted(level.units.size(), "units"),
                    min == max ? fmt::format("{}", max) : fmt::format("{} to {}", min, max),
                    max == 1 ? "" : "s");
  }
  if (answer.active.levels.empty()) text += "  none: one group joins all ranks\n";
  for (const DroppedLevel& level : answer.active.dropped) {
    text += fmt::format("  {:<8} left out: {}\n", level.name, level.reason);
  }
  text += fmt::format("\ngroups of {}, {}\n", counted(answer.bindings.size(), "ranks"),
                      answer.placed_by);
  if (answer.grouping.status != Status::ok) {
    return text + "  " + wrapped("declined: " + answer.grouping.reason, 2) + "\n";
  }
  return text + format_tree(answer.grouping.tree);
}

void run(const Options& options) {
  if (options.json && options.svg == "-") {
    throw Error(Status::invalid, "--json and --svg - both write to standard output: give a file");
  }
  const Answer answer = find_groups(options);
  if (!options.svg.empty()) {
    const Picture picture =
        draw_groups(answer.machine.topology, answer.active, answer.bindings, answer.grouping);
    if (options.svg == "-") {
      fmt::print("{}", to_svg(picture));
      return;
    }
    write_file(options.svg, to_svg(picture));
  }
  fmt::print("{}", options.json ? format_json(to_json(answer)) : to_text(answer));
}

}  // namespace

void add_topo(Command& app) {
  const auto options = std::make_shared<Options>();
  Command* const command = app.add_subcommand(
      "topo", "Show a machine's levels, and the groups and leaders that ranks on it form");
  add_machine_option(*command, options->machine, machine_option);
  command->add_option("--ranks", options->ranks, "Number of ranks (default: one per usable core)")
      ->check(Range(1U, participants_max));
  Option* const mapping =
      command->add_option("--map-by", options->mapping, "How ranks go to cores: core, numa, socket")
          ->words(mapping_names())
          ->capture_default_str();
  command
      ->add_option(
          "--bindings", options->bindings,
          "Instead of a mapping, one per rank: PUs (0-3,8), a PMIx locality string, or none")
      ->excludes(mapping);
  command->add_option("--levels", options->levels,
                      "Levels to use, joined by '-': CORE, L1, L2, L3, GROUP, DIE, NUMA, PACKAGE "
                      "(default: L2-L3-NUMA-PACKAGE)");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_option("--svg", options->svg,
                      "Draw the groups on the machine into this file; - is standard output");
  command->callback([options] { run(*options); });
}

}  // namespace muster
