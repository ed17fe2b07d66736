// SPDX-License-Identifier: BSD-3-Clause
// `muster bench mpi`: MPI_Barrier under every MPI of this machine, with and without Muster.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/barrier_report.hpp"
#include "bench/barrier_run.hpp"
#include "bench/host.hpp"
#include "bench/mpi_run.hpp"
#include "bench/report.hpp"
#include "bench/stop.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"
#include "machine/usable_cpus.hpp"

namespace muster {
namespace {

using bench::median_of_rounds;
using bench::MpiRunResults;
using bench::MpiSamples;

struct Options {
  bench::MpiRunOptions run;
  std::vector<std::string> regimes;
  double turn_ms = bench::RunOptions{}.turn_ms;
  bool osu = false;
  bool json = false;
  bool defaults = false;
  std::string output;
};

std::string number(double value, int digits = 2) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, digits);
}

bench::PairedRatio ratio_to(const MpiSamples& samples, const MpiSamples* peer) {
  return peer == nullptr || peer == &samples
             ? bench::PairedRatio{}
             : bench::paired_ratio(samples.latency, peer->latency, 1);
}

bool is_chance(const bench::PairedRatio& ratio) {
  return ratio.rounds > 0 && ratio.ci95.lo <= 1 && ratio.ci95.hi >= 1;
}

std::string us(double value) { return std::isnan(value) ? "-" : bench::format_ns(1000 * value); }

/// How soon a rank that waits serves a message: an MPI's own choice, then ours under it.
std::string fetches_to_text(const MpiRunResults& results, unsigned ranks) {
  std::string text;
  const bench::MpiInstallation* mpi = nullptr;
  double own = NAN;
  for (const MpiSamples& samples : results.samples) {
    const double fetch = bench::mean_of_rounds(samples.fetch);
    const bool is_own = samples.contender.name == "default";  // comes before ours
    if (samples.ranks != ranks || (!is_own && !samples.contender.ours)) continue;
    if (samples.contender.reports) continue;
    if (is_own || samples.contender.mpi != mpi) own = is_own ? fetch : NAN;
    mpi = samples.contender.mpi;
    if (std::isnan(fetch)) continue;
    text += fmt::format("{:<18} {:<24}{:>8}{:>15}{:>10}\n", samples.contender.mpi->name,
                        samples.contender.name, us(fetch),
                        !samples.contender.ours ? ""
                        : std::isnan(own)       ? "-"
                                                : bench::format_times(fetch / own),
                        us(median_of_rounds(samples.fetch_median)));
  }
  if (text.empty() || ranks == 1) return "";
  return fmt::format(
             "\nMPI_Fetch_and_op to a rank in its MPI_Barrier, {}\n\n"
             "{:<18} {:<24}{:>8}{:>15}{:>10}\n",
             counted(ranks, "ranks"), "MPI", "barrier", "mean", "times its own", "median") +
         text;
}

std::string reports_to_text(const MpiRunResults& results, unsigned ranks) {
  std::string text;
  for (const MpiSamples& samples : results.samples) {
    const bench::PairedDifference more = report_cost(results, samples);
    if (samples.ranks != ranks || !samples.contender.reports) continue;
    const std::string& name = samples.contender.name;
    text += fmt::format("{:<18} {:<24}{:>8}  {}\n", samples.contender.mpi->name,
                        name.substr(0, name.rfind(',')), us(median_of_rounds(samples.latency)),
                        more.rounds == 0
                            ? samples.why
                            : fmt::format("{:+.0f} ns ({:+.0f} to {:+.0f})", 1000 * more.difference,
                                          1000 * more.ci95.lo, 1000 * more.ci95.hi));
  }
  if (text.empty()) return "";
  return fmt::format("\nMPI_Barrier with MUSTER_REPORT, {}\n\n{:<18} {:<24}{:>8}  {}\n",
                     counted(ranks, "ranks"), "MPI", "barrier", "latency",
                     "more than without (95 %)") +
         text;
}

/// Tables of 80 columns at most, but for reasons: one for each number of ranks, the fastest first.
std::string to_text(const MpiRunResults& results, const std::vector<unsigned>& ranks) {
  std::string text;
  for (const unsigned count : ranks) {
    std::vector<const MpiSamples*> rows;
    for (const MpiSamples& samples : results.samples) {
      if (samples.ranks == count && !samples.contender.reports) rows.push_back(&samples);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const MpiSamples* a, const MpiSamples* b) {
      const double left = median_of_rounds(a->latency);
      const double right = median_of_rounds(b->latency);
      return std::isnan(right) ? !std::isnan(left) : left < right;
    });
    const MpiSamples* const peer = best_peer(results, count);
    text += fmt::format("\nMPI_Barrier, {}\n\n{:<18} {:<24}{:>8}{:>12}{:>8}{:>7}\n",
                        counted(count, "ranks"), "MPI", "barrier", "latency", "dup+8+free", "skew",
                        "speed");
    bool has_hopeless = false;
    for (const MpiSamples* row : rows) {
      const bench::PairedRatio ratio = ratio_to(*row, peer);
      const bool is_hopeless = row->hopeless && row->why.empty();
      has_hopeless = has_hopeless || is_hopeless;
      text += fmt::format("{:<18} {:<24}{:>8}{:>12}{:>8}{:>7}{}\n", row->contender.mpi->name,
                          row->contender.name, us(median_of_rounds(row->latency)),
                          us(median_of_rounds(row->cycle)), us(median_of_rounds(row->skew)),
                          row == peer         ? "peer"
                          : ratio.rounds == 0 ? "-"
                                              : bench::format_times(1 / ratio.ratio),
                          !row->why.empty()  ? "  " + row->why
                          : is_hopeless      ? "*"
                          : is_chance(ratio) ? "~"
                                             : "");
    }
    if (peer != nullptr) {
      text += "\nspeed: times as fast as the best peer; ~ is no surer difference than chance\n";
    }
    if (has_hopeless) text += "*: one round only, so slow is it\n";
    text += fetches_to_text(results, count) + reports_to_text(results, count);
  }
  return text;
}

/// As osu_barrier -f prints it, one run after the other.
std::string to_osu(const MpiRunResults& results) {
  std::string text;
  for (const MpiSamples& samples : results.samples) {
    text += fmt::format(
        "\n# {}, {}, {}\n# OSU MPI Barrier Latency Test\n"
        "# Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
        "{:>17}{:>18}{:>18}{:>12}\n",
        samples.contender.mpi->name, samples.contender.name, counted(samples.ranks, "ranks"),
        number(median_of_rounds(samples.latency)), number(median_of_rounds(samples.least)),
        number(median_of_rounds(samples.greatest)), number(median_of_rounds(samples.count), 0));
  }
  return text;
}

std::string to_json(const bench::MpiRunOptions& options, const MpiRunResults& results) {
  using bench::Json;
  const bench::Host host = bench::this_host();
  Json rows = Json::array();
  const auto list = [](const std::vector<double>& values) {
    Json all = Json::array();
    for (const double value : values)
      all.push_back(std::isnan(value) ? Json(nullptr) : Json(value));
    return all;
  };
  for (const MpiSamples& samples : results.samples) {
    const bench::PairedRatio ratio = ratio_to(samples, best_peer(results, samples.ranks));
    Json row{{"mpi", samples.contender.mpi->name},
             {"barrier", samples.contender.name},
             {"ours", samples.contender.ours},
             {"ranks", samples.ranks},
             {"latency_us", list(samples.latency)},
             {"dup_8_free_us", list(samples.cycle)},
             {"exit_skew_us", list(samples.skew)},
             {"fetch_and_op_us", list(samples.fetch)},
             {"fetch_and_op_median_us", list(samples.fetch_median)}};
    row["to_best_peer"] = bench::ratio_to_json(ratio);
    if (const bench::PairedDifference more = report_cost(results, samples); more.rounds > 0) {
      row["report_costs_us"] = {{"median", more.difference},
                                {"ci95", {more.ci95.lo, more.ci95.hi}}};
    }
    if (samples.hopeless) row["hopeless"] = true;
    if (!samples.why.empty()) row["why"] = samples.why;
    rows.push_back(row);
  }
  const Json all{{"benchmark", "mpi"},
                 {"machine", bench::machine_to_json(host, usable_cpus())},
                 {"build", bench::build_to_json(host)},
                 {"settings",
                  {{"ranks", options.ranks},
                   {"rounds", options.rounds},
                   {"seconds", options.seconds},
                   {"hopeless", options.hopeless},
                   {"only", options.only},
                   {"own_algorithms", options.own_algorithms},
                   {"report", options.report}}},
                 {"method", "osu_barrier's: each rank's mean, averaged over the ranks"},
                 {"stopped", results.stopped},
                 {"results", rows}};
  return format_json(all);
}

ResultFiles files_of(const Options& options) { return {options.output, "mpi", "plot_mpi.py", ""}; }

/// Who changes nothing has the barrier that an MPI chooses itself: ours are measured beside that.
void run_regimes(Options& options) {
  static_cast<void>(bench::parse_regimes(options.regimes));  // before MPIs are asked what they have
  bench::check_turn(options.turn_ms);
  const ResultFiles files = files_of(options);
  files.prepare();
  options.run.own_algorithms = false;
  std::vector<bench::MpiInstallation> mpis;
  bench::RunOptions turns;
  turns.participants = options.run.ranks;
  turns.mpi = bench::find_contenders(options.run, mpis);
  turns.modes = {bench::Mode::processes};
  turns.algorithms = turns.peers = {"none"};
  turns.regimes = options.regimes;
  turns.turn_ms = options.turn_ms;
  turns.rounds = options.run.rounds;
  bench::stop_on_ctrl_c();
  ProgressLine line;
  const bench::RunResults results =
      bench::run_barriers(turns, [&](const bench::Progress& progress) {
        line.show(progress.share, progress.what, progress.left_s);
      });
  line.clear();
  if (results.rows.empty()) bench::end_if_stopped();
  const std::string json = format_json(bench::to_json(results));
  files.write(json, "", options.json ? json : for_a_terminal(bench::to_text(results)));
  bench::expect_ours_ran(results.rows);
  bench::end_if_stopped();
}

void run(Options& options) {
  if (!options.regimes.empty()) return run_regimes(options);
  options.run.own_algorithms = !options.defaults;
  const ResultFiles files = files_of(options);
  files.prepare();
  if (options.run.ranks.empty()) options.run.ranks = {2, 4, 8, 16};
  bench::stop_on_ctrl_c();
  ProgressLine line;
  const MpiRunResults results = bench::run_mpi(options.run, [&](const bench::Progress& progress) {
    line.show(progress.share, progress.what, progress.left_s);
  });
  line.clear();
  if (results.samples.empty()) bench::end_if_stopped();
  const std::string json = to_json(options.run, results);
  files.write(json, "",
              options.json  ? json
              : options.osu ? to_osu(results)
                            : for_a_terminal(to_text(results, options.run.ranks)));
  const bool failed =
      std::any_of(results.samples.begin(), results.samples.end(),
                  [](const MpiSamples& s) { return s.contender.ours && !s.why.empty(); });
  if (failed) throw Error(Status::system, "one of ours failed: see above");
  bench::end_if_stopped();
}

}  // namespace

void add_bench_mpi(Command& group) {
  const auto options = std::make_shared<Options>();
  bench::MpiRunOptions& run_options = options->run;
  Command* const command = group.add_subcommand(
      "mpi", "Measure MPI_Barrier under every MPI found here, with and without Muster");
  command->add_option("--ranks", run_options.ranks, "How many, a list")
      ->delimiter(',')
      ->check(Range(1U, 1024U))
      ->default_str("2,4,8,16; with --regime 2,4, crowded twice and four times the CPUs");
  command->add_option("--rounds", run_options.rounds, "How often everyone has its turn")
      ->check(Range(1U, 1000U))
      ->capture_default_str();
  command->add_option("--seconds", run_options.seconds, "Of barriers in each launch")
      ->check(Range(0.001, 1000.0))
      ->capture_default_str();
  command->add_option("--timeout", run_options.timeout_s, "Seconds that a launch may take")
      ->check(Range(0.001, 1e6))
      ->capture_default_str();
  command
      ->add_option("--hopeless", run_options.hopeless,
                   "Who is so many times slower than the best has the first round only")
      ->check(Range(1.0, 1e9))
      ->capture_default_str();
  command->add_option("--only", run_options.only,
                      "Part of a name: of an MPI, or of what serves its barrier");
  command->add_flag("--defaults", options->defaults,
                    "Of each MPI's own barriers only the one it chooses itself");
  command
      ->add_option("--peers", run_options.peers,
                   "Folder with more MPIs, made by `make peers` (default: build/peers)")
      ->default_str("build/peers");
  run_options.peers = bench::default_peers();
  Option* const report =
      command->add_flag("--report", run_options.report,
                        "Ours with MUSTER_REPORT, too, and what that costs a barrier");
  Option* const regime =
      command
          ->add_option("--regime", options->regimes,
                       "Who else wants the CPUs, a list or all: ours beside each MPI's own "
                       "barrier under each, in turns (default: quiet, by osu_barrier's method)")
          ->words(bench::regime_names())
          ->delimiter(',')
          ->excludes(report);
  command->add_option("--turn", options->turn_ms, "With --regime: milliseconds that a turn takes")
      ->capture_default_str();
  Option* const json = command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--osu", options->osu, "Print what osu_barrier -f prints")
      ->excludes(json)
      ->excludes(regime);
  command->add_option("--output", options->output, "Folder for mpi.json, and a plot (PNG and SVG)");
  command->footer(
      "Every MPI's barriers and ours take turns, round by round. Ranks are bound to cores while "
      "there are enough, and not bound where there are more. Latencies are medians of the rounds; "
      "the ratio to the best of the others' is taken round by round (bootstrap over rounds). With "
      "--regime, ranks wait back to back for whole turns, and all of their time counts; p50 to "
      "p99.9 are of single barriers, CPU is what all ranks had of it. Regimes:\n" +
      bench::regimes_to_text());
  command->callback([options] { run(*options); });
}

}  // namespace muster
