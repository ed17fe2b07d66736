// SPDX-License-Identifier: BSD-3-Clause
// `muster bench lock`: our locks beside the ones people use today, in one interleaved run.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/barrier_report.hpp"
#include "bench/lock_report.hpp"
#include "bench/lock_run.hpp"
#include "bench/measure.hpp"
#include "machine/error.hpp"
#include "subcommands.hpp"

namespace muster {
namespace {

struct Options {
  bench::LockRunOptions run;
  std::vector<std::string> patterns{"sequential", "random"};
  bool json = false;
  bool csv = false;
  std::string output;
};

/// A line on standard error now and then.
void show(const bench::Progress& progress) {
  static std::int64_t next_ns = bench::clock_ns() + 5'000'000'000;
  const std::int64_t now_ns = bench::clock_ns();
  if (now_ns < next_ns) return;
  next_ns = now_ns + 5'000'000'000;
  fmt::print(stderr, "muster: {:3.0f} %, {:.0f} s left: {}\n", 100 * progress.share,
             progress.left_s, progress.what);
}

/// Draws with plot/plot_lock.py; says why there is no picture, if there is none.
bool plot(const std::string& data, const std::string& directory) {
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  std::string script = program.parent_path().parent_path() / "share/muster/plot_lock.py";
  if (!std::filesystem::exists(script, none)) script = MUSTER_SOURCE_DIR "/plot/plot_lock.py";
  // Debian's matplotlib belongs to Debian's Python, which need not be the first on PATH.
  const char* const python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
  const pid_t child = fork();
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execlp(python, python, script.c_str(), data.c_str(), directory.c_str(),
           static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = -1;
  if (child > 0) waitpid(child, &status, 0);
  if (status == 0) return true;
  fmt::print(stderr, "muster: no plot: install python3 and python3-matplotlib\n");
  return false;
}

void run(Options& options) {
  options.run.patterns.clear();
  for (const std::string& name : options.patterns) {
    options.run.patterns.push_back(parse_pattern(name));
  }
  if (!options.output.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.output, error);
    if (error) {
      throw Error(Status::system,
                  fmt::format("{} cannot be made: {}", options.output, error.message()));
    }
  }
  const bench::LockRunResults results = bench::run_locks(options.run, show);
  const std::string json =
      bench::to_json(results).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  fmt::print("{}", options.json  ? json
                   : options.csv ? bench::to_csv(results)
                                 : bench::to_text(results));
  std::fflush(stdout);
  if (options.output.empty()) return;
  const std::string base = options.output + "/lock";
  bench::write_file(base + ".json", json);
  bench::write_file(base + ".csv", bench::to_csv(results));
  const bool plotted = plot(base + ".json", options.output);
  fmt::print(stderr, "Written: {0}.json, {0}.csv{1}\n", base,
             plotted ? fmt::format(", {0}.png, {0}.svg", base) : "");
}

}  // namespace

void add_bench_lock(CLI::App& group) {
  const auto options = std::make_shared<Options>();
  bench::LockRunOptions& o = options->run;
  CLI::App* const command = group.add_subcommand(
      "lock", "Measure the locks of this library beside those people use today");
  command->add_option("--locks", o.locks, "By name, or all, ours, peers; a list")
      ->delimiter(',')
      ->default_str("all");
  command->add_option("--threads", o.threads, "How many, a list (default: 1,2,4,8)")
      ->delimiter(',');
  command->add_option("--pattern", options->patterns, "sequential, strided, random; a list")
      ->delimiter(',')
      ->default_str("sequential,random");
  command->add_option("--array", o.array, "Words of 4 bytes in the array")->capture_default_str();
  command->add_option("--stride", o.stride, "Words from one to the next, strided")
      ->capture_default_str();
  command->add_option("--operations", o.operations,
                      "Increments in a round, of all threads (default: equal time for each lock)");
  command->add_option("--map-by", o.map_by, "How threads are bound: core, numa, socket, none")
      ->capture_default_str();
  command->add_option("--seconds", o.seconds, "Time for the whole measurement")
      ->capture_default_str();
  command->add_option("--rounds", o.rounds, "How often each lock has its turn")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  command->add_option("--seed", o.seed, "Of the random indices and the bootstrap")
      ->capture_default_str();
  CLI::Option* const json = command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--csv", options->csv, "Print the rows as CSV")->excludes(json);
  command->add_option("--output", options->output,
                      "Folder for lock.json, lock.csv, and a plot (PNG and SVG)");
  command->footer(
      "Each thread increments words of one array, each inside a critical section. All locks take\n"
      "turns, round by round. Latency: of every 256th operation. Fairness: most over fewest\n"
      "operations of a thread. Misses: by the machine's counters, n/a where it has none.");
  command->callback([options] { run(*options); });
}

}  // namespace muster
