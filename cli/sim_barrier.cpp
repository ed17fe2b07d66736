// SPDX-License-Identifier: BSD-3-Clause
// `muster sim barrier`: the latencies of barriers on a modelled machine.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "bench/stop.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/sim_common.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"
#include "sim/episode.hpp"

namespace muster {
namespace {

struct Options {
  MachineChoice machine;
  std::vector<std::string> algorithms{"all"};
  TeamChoice teams;
  sim::Effort effort;
  bool json = false;
  bool csv = false;
  std::string output;
  std::string trace;
  bool why = false;
};

/// --trace and --why are about one barrier: the only one, or an error.
void explain_one(const Options& options, const sim::MachineModel& machine,
                 const std::vector<sim::Query>& queries) {
  if (queries.size() != 1) {
    throw Error(Status::invalid,
                fmt::format("--trace and --why show one barrier, not {}: give one algorithm, one "
                            "number of ranks and one mapping",
                            queries.size()));
  }
  const sim::Episode episode = sim::record_episode(machine, queries.front(), options.effort);
  if (!options.trace.empty()) {
    write_and_tell(options.trace, sim::chrome_trace(episode),
                   " (open it in Perfetto or chrome://tracing)");
  }
  if (options.why) fmt::print("{}", sim::why(episode));
}

void run(const Options& options) {
  const sim::MachineModel machine = options.machine.load();
  const std::vector<std::string> algorithms = algorithms_for(machine, options.algorithms);
  const auto teams = options.teams.on(machine);
  std::vector<sim::Query> queries;
  for (const std::string& algorithm : algorithms) {
    for (const auto& [ranks, mapping] : teams) {
      const bool choose = algorithm == "auto";
      queries.push_back({choose ? choice_on(machine, ranks, mapping) : algorithm, ranks, mapping});
    }
  }
  const ResultFiles files{options.output, "sim", "plot_sim.py"};
  files.prepare();
  if (options.why || !options.trace.empty()) {
    explain_one(options, machine, queries);
    if (options.why) return;
  }
  ProgressLine line;
  bench::stop_on_ctrl_c();
  const std::vector<sim::Prediction> predictions =
      sim::predict(machine, queries, options.effort, shown_on(line, machine.name));
  line.clear();
  if (predictions.empty()) bench::end_if_stopped();
  std::vector<sim::Predicted> rows;
  for (std::size_t n = 0; n < predictions.size(); ++n) {
    rows.push_back({queries[n], predictions[n], algorithms[n / teams.size()] == "auto"});
  }

  const std::string json =
      format_json(sim_rows(machine, options.machine.settings(machine, options.effort), rows));
  const std::string csv = sim_rows_csv(machine, rows);
  files.write(json, csv, options.json ? json : options.csv ? csv : sim_rows_text(machine, rows));
  bench::end_if_stopped();
}

}  // namespace

void add_sim_barrier(Command& sim) {
  const auto options = std::make_shared<Options>();
  Command* const command =
      sim.add_subcommand("barrier", "What barriers take there, with intervals");
  options->machine.add_to(*command);
  command
      ->add_option("--algorithms", options->algorithms,
                   "By name (see `muster list`), a list; auto: what it is there; all: the classic "
                   "ones, trees of radix 2 to 16, topo and topo-counter with every set of levels")
      ->words({"all"})
      ->listed({"algorithm", "message barrier", "OpenMP's barrier"})
      ->delimiter(',')
      ->default_str("all");
  options->teams.add_to(*command);
  command
      ->add_option("--members", options->effort.members,
                   "Settings of what is not known that the intervals span")
      ->check(Range(0U, 64U))
      ->capture_default_str();
  command->add_option("--seeds", options->effort.seeds, "Runs of each, averaged")
      ->check(Range(1U, 1000U))
      ->capture_default_str();
  Option* const json = command->add_flag("--json", options->json, "Print one JSON object");
  Option* const csv =
      command->add_flag("--csv", options->csv, "Print the rows as CSV")->excludes(json);
  Option* const output = command->add_option(
      "--output", options->output, "Folder for sim.json, sim.csv, and a plot (PNG and SVG)");
  command->add_option("--trace", options->trace,
                      "Write one steady episode of the one barrier asked for as a Chrome trace");
  command
      ->add_flag("--why", options->why,
                 "Say in words what decided how long one steady episode took")
      ->excludes(json)
      ->excludes(csv)
      ->excludes(output);
  command->callback([options] { run(*options); });
}

}  // namespace muster
