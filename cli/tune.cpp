// SPDX-License-Identifier: BSD-3-Clause
// `muster tune`: the barrier that fits a machine, searched in the model.
#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/sim_common.hpp"
#include "cli/subcommands.hpp"
#include "sim/tune.hpp"

namespace muster {
namespace {

struct Options {
  MachineChoice machine;
  TeamChoice teams;
  sim::TuneEffort effort;
  bool json = false;
};

void run(const Options& options) {
  const sim::MachineModel machine = options.machine.load();
  const auto teams = options.teams.on(machine);
  ProgressLine progress;
  std::vector<sim::Predicted> rows;
  for (std::size_t done = 0; done < teams.size(); ++done) {
    const unsigned ranks = teams[done].first;
    const Mapping mapping = teams[done].second;
    const auto tell = [&](double share, unsigned tried) {
      progress.show(
          (static_cast<double>(done) + share) / static_cast<double>(teams.size()),
          fmt::format("{} ranks by {}: {} barriers tried", ranks, mapping_name(mapping), tried));
    };
    const auto best = sim::tune(machine, ranks, mapping, options.effort, tell);
    rows.insert(rows.end(), best.begin(), best.end());
  }
  progress.clear();
  fmt::print("{}", options.json ? sim_rows_json(machine, rows) : sim_rows_text(machine, rows));
}

}  // namespace

void add_tune(Command& app) {
  const auto options = std::make_shared<Options>();
  Command* const command =
      app.add_subcommand("tune", "Compose the barrier that fits a machine, in the model");
  options->machine.add_to(*command);
  options->teams.add_to(*command);
  command
      ->add_option("--starts", options->effort.starts,
                   "Recipes that the search begins with on each set of levels")
      ->check(Range(1U, 5U))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { run(*options); });
}

}  // namespace muster
