// SPDX-License-Identifier: BSD-3-Clause
// `muster bench barrier`: our barriers beside the ones people use today, in one interleaved run.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/barrier_report.hpp"
#include "bench/barrier_run.hpp"
#include "machine/error.hpp"
#include "subcommands.hpp"

namespace muster {
namespace {

struct Options {
  bench::RunOptions run;
  std::vector<std::string> modes{"threads"};
  bool json = false;
  bool csv = false;
  std::string output;
};

/// On a terminal one line that is kept up to date; else a line every ten seconds.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }

  void show(const bench::Progress& progress) {
    const std::int64_t now_ns = bench::clock_ns();
    if (now_ns < next_ns_) return;
    next_ns_ = now_ns + (terminal_ ? 200'000'000 : 10'000'000'000);
    const std::string text = fmt::format("{:3.0f} %, {:.0f} s left: {}", 100 * progress.share,
                                         progress.left_s, progress.what);
    if (terminal_) {
      fmt::print(stderr, "\r{:<60}", text);
      std::fflush(stderr);
      shown_ = true;
    } else {
      fmt::print(stderr, "muster: {}\n", text);
    }
  }

  void clear() {
    if (shown_) fmt::print(stderr, "\r{:60}\r", "");
    shown_ = false;
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  std::int64_t next_ns_ = bench::clock_ns() + (terminal_ ? 0 : 10'000'000'000);
  bool shown_ = false;
};

/// The program that draws: $MUSTER_PLOT if set, beside this program's share/, or in the source
/// tree.
std::string find_plot_script() {
  if (const char* const set = std::getenv("MUSTER_PLOT"); set != nullptr) return set;
  std::error_code none;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  for (const auto& path : {program.parent_path().parent_path() / "share/muster/plot_barrier.py",
                           std::filesystem::path(MUSTER_SOURCE_DIR) / "plot/plot_barrier.py"}) {
    if (std::filesystem::exists(path, none)) return path;
  }
  return {};
}

/// Runs the plot script; says on standard error why there is no picture, if there is none.
bool plot(const std::string& data, const std::string& directory) {
  const std::string script = find_plot_script();
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
  std::string why = "see above";
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) why = "install python3-matplotlib";
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    why = "install python3 and python3-matplotlib";
  if (script.empty()) why = "plot_barrier.py was not found";
  fmt::print(stderr, "muster: no plot: {}\n", why);
  return false;
}

void make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    throw Error(Status::system, fmt::format("{} cannot be made: {}", path, error.message()));
}

void run(Options& options) {
  options.run.modes.clear();
  for (const std::string& mode : options.modes)
    options.run.modes.push_back(bench::parse_mode(mode));
  // Before anything is measured: what cannot be written is no use.
  if (!options.output.empty()) make_directory(options.output);

  ProgressLine line;
  const bench::RunResults results = bench::run_barriers(
      options.run, [&](const bench::Progress& progress) { line.show(progress); });
  line.clear();

  const std::string json =
      bench::to_json(results).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (options.json) {
    fmt::print("{}", json);
  } else if (options.csv) {
    fmt::print("{}", bench::to_csv(results));
  } else {
    fmt::print("{}", bench::to_text(results));
  }
  std::fflush(stdout);
  if (options.output.empty()) return;
  const std::string base = options.output + "/barrier";
  bench::write_file(base + ".json", json);
  bench::write_file(base + ".csv", bench::to_csv(results));
  const bool plotted = plot(base + ".json", options.output);
  fmt::print(stderr, "Written: {0}.json, {0}.csv{1}\n", base,
             plotted ? fmt::format(", {0}.png, {0}.svg", base) : "");
}

}  // namespace

void add_bench_barrier(CLI::App& group) {
  const auto options = std::make_shared<Options>();
  bench::RunOptions& run_options = options->run;
  CLI::App* const command = group.add_subcommand(
      "barrier", "Measure the barriers of this library beside those people use today");
  command
      ->add_option("--algorithms", run_options.algorithms,
                   "Ours, by name (see `muster list`): all, none, or a list")
      ->delimiter(',')
      ->default_str("all");
  command
      ->add_option("--participants", run_options.participants,
                   "How many, a list (default: powers of two to twice the CPUs, 8 at least)")
      ->delimiter(',');
  command->add_option("--mode", options->modes, "threads, processes, or both in a list")
      ->delimiter(',')
      ->default_str("threads");
  command
      ->add_option("--map-by", run_options.map_by,
                   "How ranks are bound: core, numa, socket, none (unbound)")
      ->capture_default_str();
  command->add_option(
      "--topology", run_options.topology,
      "Group ours as on another machine, hwloc XML file or synthetic description; they run here "
      "(default: $MUSTER_TOPOLOGY, else this machine)");
  command
      ->add_option("--wait", run_options.wait,
                   "How ours wait: auto or a policy (see `muster list`)")
      ->capture_default_str();
  command
      ->add_option("--peers", run_options.peers,
                   "Which others: all, none, or a list (see `muster list`)")
      ->delimiter(',')
      ->default_str("all");
  command->add_option("--seconds", run_options.seconds, "Time for the whole measurement")
      ->capture_default_str();
  command
      ->add_option("--rounds", run_options.rounds,
                   "How often everyone gets its turn (default: 5 to 20, slices of 40 ms)")
      ->check(CLI::Range(1U, 1000U));
  command->add_option("--seed", run_options.seed, "Of the bootstrap's random numbers")
      ->capture_default_str();
  CLI::Option* const json = command->add_flag("--json", options->json, "Print one JSON object");
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
      "episodes;\n"
      "the interval is that of the median (bootstrap over rounds), and where intervals overlap no\n"
      "order is claimed. What cannot finish an episode in its time is said to \"did not finish\".");
  command->callback([options] { run(*options); });
}

}  // namespace muster
