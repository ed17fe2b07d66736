// SPDX-License-Identifier: BSD-3-Clause
// `muster sim fit`: fits a machine's free parameters to measured latencies, and writes it.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/sim_common.hpp"
#include "cli/subcommands.hpp"
#include "sim/fit.hpp"

namespace muster {
namespace {

struct Options {
  MachineChoice machine;
  std::vector<std::string> measured;
  std::string output;
  std::string name;
  sim::FitOptions fit;
};

void run(Options& options) {
  if (!options.name.empty()) sim::check_machine_name(options.name);
  if (!options.output.empty()) expect_writable(options.output);
  const sim::MachineModel machine = options.machine.load();
  const std::vector<sim::Measurement> measured = sim::load_measurements(options.measured);
  const bool terminal = isatty(STDERR_FILENO) == 1;
  if (terminal) {
    options.fit.progress = [](unsigned evaluations, double rms) {
      note("\r{} evaluations, rms of the log ratios {:.3f} ", evaluations, rms);
      std::fflush(stderr);
    };
  }
  sim::FitResult result = sim::fit(machine, measured, options.fit);
  if (terminal) note("\r{:60}\r", "");
  if (!options.name.empty()) result.machine.name = options.name;

  fmt::print("{}\n\n", wrapped(machine.name + ": " + machine.about));
  fmt::print("{:<26} {:>6}  {:<7} {:>10} {:>10} {:>8}\n", "algorithm", "ranks", "map by",
             "measured", "modelled", "error");
  for (std::size_t n = 0; n < measured.size(); ++n) {
    fmt::print("{:<26} {:>6}  {:<7} {:>10.2f} {:>10.2f} {:>+7.1f} %\n", measured[n].query.algorithm,
               measured[n].query.ranks, mapping_name(measured[n].query.map_by),
               measured[n].latency_us, result.modelled_us[n],
               100 * (result.modelled_us[n] / measured[n].latency_us - 1));
  }
  fmt::print("\nmedian error {:.1f} %, rms of the log ratios {:.3f}, {} evaluations\n",
             100 * result.median_error, result.rms, result.evaluations);
  for (const std::string& key : result.fitted) {
    fmt::print("  {:<18} {:.4g}\n", key, result.machine.value(key));
  }
  if (!options.output.empty())
    write_machine(options.output, as_written_to(options.output, result.machine));
}

}  // namespace

void add_sim_fit(Command& sim) {
  const auto options = std::make_shared<Options>();
  Command* const command =
      sim.add_subcommand("fit", "Fit a machine's free parameters to measured latencies");
  options->machine.add_to(*command);
  command
      ->add_option("--measured", options->measured,
                   "CSVs with the columns algorithm, ranks, latency_us and perhaps map_by, a list")
      ->delimiter(',')
      ->required();
  command
      ->add_option("--free", options->fit.free,
                   "What to fit, a list of parameters and latencies (latency-NUMA); each one more "
                   "fits better and predicts worse")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--evaluations", options->fit.evaluations,
                   "How often the measurements are modelled in the search")
      ->check(Range(1U, 1000000U))
      ->capture_default_str();
  command
      ->add_option("--samples", options->fit.samples,
                   "How often it is fitted again with other values for what is not known")
      ->check(Range(0U, 64U))
      ->capture_default_str();
  command->add_option("--seed", options->fit.seed, "Of the search")->capture_default_str();
  command->add_option("--name", options->name, "The fitted machine's name");
  command->add_option("--output", options->output, "The fitted machine's description file");
  command->callback([options] { run(*options); });
}

}  // namespace muster
