// SPDX-License-Identifier: BSD-3-Clause
// `muster bench lock`: our locks beside the ones people use today, in one interleaved run.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/lock_report.hpp"
#include "bench/lock_run.hpp"
#include "bench/stop.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"

namespace muster {
namespace {

struct Options {
  bench::LockRunOptions run;
  std::vector<std::string> patterns{"sequential", "random"};
  bool json = false;
  bool csv = false;
  std::string output;
};

void run(Options& options) {
  options.run.patterns.clear();
  for (const std::string& name : options.patterns) {
    options.run.patterns.push_back(parse_pattern(name));
  }
  bench::check(options.run);  // a mistake leaves no folder
  const ResultFiles files{options.output, "lock", "plot_lock.py"};
  bench::stop_on_ctrl_c();
  files.prepare();

  ProgressLine line;
  const bench::LockRunResults results =
      bench::run_locks(options.run, [&](const bench::Progress& progress) {
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

void add_bench_lock(Command& group) {
  const auto options = std::make_shared<Options>();
  bench::LockRunOptions& o = options->run;
  Command* const command = group.add_subcommand(
      "lock", "Measure the locks of this library beside those people use today");
  command
      ->add_option("--locks", o.locks, "By name (see `muster list`), or all, ours, peers; a list")
      ->words({"all", "ours", "peers"})
      ->listed({"lock", "lock peer", "lock reference"})
      ->delimiter(',')
      ->default_str("all");
  command
      ->add_option(
          "--threads", o.threads,
          "How many, a list (default: 1,2,4,8; with --regime 2,4,8, crowded twice and four "
          "times the CPUs)")
      ->delimiter(',');
  command->add_option("--pattern", options->patterns, "sequential, strided, random; a list")
      ->words(pattern_names())
      ->delimiter(',')
      ->default_str("sequential,random");
  command->add_option("--array", o.array, "Words of 4 bytes in the array")->capture_default_str();
  command->add_option("--stride", o.stride, "Words from one to the next, strided")
      ->capture_default_str();
  command
      ->add_option("--readers", o.readers,
                   "Percent of the sections that only read, which a lock with readers executes "
                   "side by side")
      ->capture_default_str();
  command->add_option("--operations", o.operations,
                      "Increments in a round, of all threads, however long they take (default: "
                      "equal time for each lock)");
  command->add_option("--map-by", o.map_by, "How threads are bound: core, numa, socket, none")
      ->listed({"mapping"})
      ->capture_default_str();
  command
      ->add_option("--regime", o.regimes,
                   "Who else wants the CPUs, a list or all; everyone runs under each (default: "
                   "quiet)")
      ->words(bench::regime_names())
      ->delimiter(',');
  command->add_option("--turn", o.turn_ms, "With --regime: milliseconds that a turn takes")
      ->capture_default_str();
  command->add_option("--seconds", o.seconds,
                      "Time for all turns together; does not hold with --operations (default: 28; "
                      "with --regime what turns take)");
  command->add_option("--rounds", o.rounds, "How often each lock has its turn")
      ->check(Range(1U, 1000U))
      ->capture_default_str();
  command->add_option("--seed", o.seed, "Of the random indices and the bootstrap")
      ->capture_default_str();
  Option* const json = command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--csv", options->csv, "Print the rows as CSV")->excludes(json);
  command->add_option("--output", options->output,
                      "Folder for lock.json, lock.csv, and a plot (PNG and SVG)");
  command->footer(
      "Each thread increments words of one array, each inside a critical section. All locks take "
      "turns, round by round. Latency: of operations drawn at random over the whole turn, median "
      "and percentiles of all operations, with the clock's reading in it (see the row `none`); "
      "\"-\": too few samples for that one. The JSON object has the whole distribution, the "
      "picture draws it. Fairness: most over fewest operations of a thread. Cache misses, where "
      "the machine counts them, are in the JSON object and the CSV. What each field means: "
      "doc/measuring.md. Regimes:\n" +
      bench::regimes_to_text());
  command->callback([options] { run(*options); });
}

}  // namespace muster
