// SPDX-License-Identifier: BSD-3-Clause
// `muster tune`: the barrier that fits a machine, searched in the model.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/sim_common.hpp"
#include "cli/subcommands.hpp"
#include "sim/tune.hpp"

namespace muster {
namespace {

struct Options {
  MachineChoice machine;
  std::vector<unsigned> ranks;  // empty: all cores
  std::vector<std::string> map_by{"core"};
  sim::TuneEffort effort;
  bool json = false;
};

void run(const Options& options) {
  const sim::MachineModel machine = options.machine.load();
  std::vector<unsigned> ranks = options.ranks;
  if (ranks.empty()) ranks.push_back(static_cast<unsigned>(machine.shape->cores().size()));
  nlohmann::ordered_json json{{"machine", machine.name}, {"choices", nlohmann::json::array()}};
  std::string text =
      fmt::format("{}: {}\nPredicted by the model, not measured.\n", machine.name, machine.about);
  ProgressLine progress;
  const std::size_t cells = ranks.size() * options.map_by.size();
  std::size_t done = 0;
  for (const unsigned count : ranks) {
    for (const std::string& mapping : options.map_by) {
      const auto tell = [&](unsigned tried) {
        progress.show(static_cast<double>(done) / static_cast<double>(cells),
                      fmt::format("{} ranks by {}: {} barriers tried", count, mapping, tried));
      };
      const std::vector<sim::Candidate> best =
          sim::tune(machine, count, parse_mapping(mapping), options.effort, tell);
      ++done;
      nlohmann::ordered_json choice{{"ranks", count}, {"map_by", mapping}};
      text += fmt::format("\n{} ranks by {}\n", count, mapping);
      for (const sim::Candidate& c : best) {
        choice["candidates"].push_back({{"algorithm", c.algorithm},
                                        {"latency_us", c.prediction.latency_us},
                                        {"latency_us_low", c.prediction.latency_us_low},
                                        {"latency_us_high", c.prediction.latency_us_high}});
        text += fmt::format("  {:>6.2f} us  {:>5.2f} to {:>5.2f}  {}\n", c.prediction.latency_us,
                            c.prediction.latency_us_low, c.prediction.latency_us_high, c.algorithm);
      }
      json["choices"].push_back(choice);
    }
  }
  progress.clear();
  fmt::print("{}", options.json ? format_json(json) : text);
}

}  // namespace

void add_tune(Command& app) {
  const auto options = std::make_shared<Options>();
  Command* const command =
      app.add_subcommand("tune", "Compose the barrier that fits a machine, in the model");
  options->machine.add_to(*command);
  command->add_option("--ranks", options->ranks, "How many, a list (default: one per core)")
      ->delimiter(',')
      ->check(Range(1U, 4096U));
  command
      ->add_option("--map-by", options->map_by, "How ranks go to cores: core, numa, socket; a list")
      ->delimiter(',')
      ->default_str("core");
  command
      ->add_option("--starts", options->effort.starts,
                   "Recipes that the search begins with on each set of levels")
      ->check(Range(1U, 5U))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { run(*options); });
}

}  // namespace muster
