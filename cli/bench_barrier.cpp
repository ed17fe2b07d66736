// SPDX-License-Identifier: BSD-3-Clause
// `muster bench barrier`: our barriers beside the ones people use today, in one interleaved run.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/barrier_report.hpp"
#include "bench/barrier_run.hpp"
#include "bench/stop.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"

namespace muster {
namespace {

struct Options {
  bench::RunOptions run;
  std::vector<std::string> modes{"threads"};
  bool json = false;
  bool csv = false;
  std::string output;
};

void run(Options& options) {
  options.run.modes.clear();
  for (const std::string& mode : options.modes)
    options.run.modes.push_back(bench::parse_mode(mode));
  bench::check(options.run);  // a mistake leaves no folder
  const ResultFiles files{options.output, "barrier", "plot_barrier.py"};
  bench::stop_on_ctrl_c();
  files.prepare();

  ProgressLine line;
  const bench::RunResults results =
      bench::run_barriers(options.run, [&](const bench::Progress& progress) {
        line.show(progress.share, progress.what, progress.left_s);
      });
  line.clear();
  if (results.rows.empty()) bench::end_if_stopped();

  const std::string json = format_json(bench::to_json(results));
  const std::string csv = bench::to_csv(results);
  files.write(json, csv,
              options.json  ? json
              : options.csv ? csv
                            : for_a_terminal(bench::to_text(results)));
  bench::expect_ours_ran(results.rows);
  bench::end_if_stopped();
}

}  // namespace

void add_bench_barrier(Command& group) {
  const auto options = std::make_shared<Options>();
  bench::RunOptions& run_options = options->run;
  Command* const command = group.add_subcommand(
      "barrier", "Measure the barriers of this library beside those people use today");
  command
      ->add_option(
          "--algorithms", run_options.algorithms,
          "Ours, by name (see `muster list`): all, none, or a list, also with barriers over "
          "messages (default: all, but none of those; with --regime auto)")
      ->words({"all", "none"})
      ->listed({"algorithm", "message barrier"})
      ->delimiter(',');
  command
      ->add_option("--participants", run_options.participants,
                   "How many, a list (default: powers of two to twice the CPUs, 8 at least; with "
                   "--regime 2,4,8, crowded twice and four times the CPUs)")
      ->delimiter(',');
  command->add_option("--mode", options->modes, "threads, processes, or both in a list")
      ->words(bench::mode_names())
      ->delimiter(',')
      ->default_str("threads");
  command
      ->add_option("--map-by", run_options.map_by,
                   "How ranks are bound: core, numa, socket, none (unbound)")
      ->listed({"mapping"})
      ->capture_default_str();
  command->add_option(
      "--topology", run_options.topology,
      "Group ours as on another machine, hwloc XML file or synthetic description; they run here "
      "(default: $MUSTER_TOPOLOGY, else this machine)");
  command
      ->add_option("--wait", run_options.waits,
                   "How ours wait: auto, policies (see `muster list`), a list (default: auto; with "
                   "--regime all)")
      ->listed({"wait"})
      ->delimiter(',');
  command
      ->add_option("--regime", run_options.regimes,
                   "Who else wants the CPUs, a list or all; everyone runs under each, in turns "
                   "(default: quiet, in batches of episodes)")
      ->words(bench::regime_names())
      ->delimiter(',');
  command
      ->add_option("--turn", run_options.turn_ms, "With --regime: milliseconds that a turn takes")
      ->capture_default_str();
  command
      ->add_option("--peers", run_options.peers,
                   "Which others: all, none, or a list (see `muster list`)")
      ->words({"all", "none", "ck"})
      ->listed({"peer"})
      ->delimiter(',')
      ->default_str("all");
  command->add_option(
      "--seconds", run_options.seconds,
      "Time for the whole measurement (default: 27; with --regime what turns take)");
  command
      ->add_option("--rounds", run_options.rounds,
                   "How often everyone gets its turn (default: 5 to 20, slices of 40 ms; with "
                   "--regime 7)")
      ->check(Range(1U, 1000U));
  command->add_option("--seed", run_options.seed, "Of the bootstrap's random numbers")
      ->capture_default_str();
  Option* const json = command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--csv", options->csv, "Print the rows as CSV")->excludes(json);
  command->add_option("--output", options->output,
                      "Folder for barrier.json, barrier.csv, and a plot (PNG and SVG)");
  command->add_option("--via", run_options.via, "How ours are called: c, template, both")
      ->group("");
  command->add_option("--hidden", run_options.hidden, "Contestants that misbehave, for tests")
      ->delimiter(',')
      ->group("");
  command->footer(
      "All take turns, round by round, for equal times. A latency is the mean of a batch of "
      "episodes; the interval is that of the median (bootstrap over rounds), and where intervals "
      "overlap no order is claimed. Who cannot finish an episode in its time \"did not finish\". "
      "With --regime, auto, all wait policies and the others run back to back for whole turns, and "
      "all of their time counts. Regimes:\n" +
      bench::regimes_to_text());
  command->callback([options] { run(*options); });
}

}  // namespace muster
