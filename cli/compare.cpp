// SPDX-License-Identifier: BSD-3-Clause
// `muster compare`: what got faster or slower between two runs of a benchmark, beyond chance.
#include "bench/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"

namespace muster {
namespace {

using bench::Change;
using bench::Comparison;
using bench::RunFile;
using Json = nlohmann::ordered_json;

struct Options {
  std::string old_runs;
  std::string new_runs;
  std::string benchmark;
  std::string fail_if;
  bool all = false;
  bool anyway = false;
  bool json = false;
};

/// A file's run, or a folder's: all of one benchmark, as --output keeps them.
std::vector<RunFile> load_all(const std::string& place, const std::string& benchmark) {
  std::error_code none;
  if (!std::filesystem::is_directory(place, none))
    return {bench::read_run(read_results(place), place)};
  std::map<std::string, std::vector<RunFile>> found;  // by benchmark
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(place)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    const Json json = read_results(file);
    if (!bench::is_run(json)) continue;  // of another command
    RunFile run = bench::read_run(json, file);
    if (benchmark.empty() || run.benchmark == benchmark)
      found[run.benchmark].push_back(std::move(run));
  }
  if (found.size() == 1) return std::move(found.begin()->second);
  std::string names;
  for (const auto& [name, runs] : found) names += (names.empty() ? "" : " and ") + name;
  throw Error(Status::invalid,
              found.empty()
                  ? fmt::format("no run of bench {} is in {}",
                                benchmark.empty() ? "barrier, lock or mpi" : benchmark, place)
                  : fmt::format("{} has runs of {}: say which with --benchmark", place, names));
}

/// "slower:5%": what of, and how much.
struct Limit {
  bool slower = true;
  double share = -1;  ///< negative: none was set
};

Limit parse_limit(const std::string& text) {
  if (text.empty()) return {};
  Limit limit;
  const std::size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  std::string number = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool has_percent = number.ends_with('%');
  if (has_percent) number.pop_back();
  double percent = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if ((word != "slower" && word != "faster") || !has_percent || error != std::errc{} ||
      end != number.data() + number.size() || !(percent >= 0) || !std::isfinite(percent)) {
    throw Error(Status::invalid,
                fmt::format("--fail-if takes slower:5% or faster:5%, not \"{}\"", text));
  }
  limit.slower = word == "slower";
  limit.share = percent / 100;
  return limit;
}

bool exceeds(const Change& change, const Limit& limit) {
  if (limit.share < 0 || !change.is_told) return false;
  return limit.slower ? change.ratio >= 1 + limit.share : 1 / change.ratio >= 1 + limit.share;
}

void check_comparable(const RunFile& a, const RunFile& b) {
  const auto refuse = [](const std::string& left, const std::string& right) {
    if (left == right) return;
    throw Error(Status::invalid, fmt::format("these cannot be compared: \"{}\" and \"{}\" "
                                             "(--anyway does)",
                                             left, right));
  };
  refuse(a.machine, b.machine);
  refuse(a.settings, b.settings);
}

std::string percent(double ratio) { return fmt::format("{:+.1f} %", 100 * (ratio - 1)); }

std::string row_text(const Change& change) {
  return fmt::format("{:<36.36}{:>9}{:>10}{:>10}  {:>+6.0f} to {:>+5.0f} %  {}\n", change.what,
                     bench::format_ns(change.old_ns), bench::format_ns(change.new_ns),
                     percent(change.ratio), 100 * (change.ci95.lo - 1), 100 * (change.ci95.hi - 1),
                     !change.is_told    ? ""
                     : change.ratio > 1 ? "slower"
                                        : "faster");
}

std::string to_text(const Comparison& comparison, bool several, const Options& options) {
  std::string text = wrapped(fmt::format(
      "Times of {} moved by {} between the runs: that is the machine. {} by {:.1f} % by chance.\n",
      counted(comparison.peers, "other implementations"), percent(comparison.drift),
      several ? "Ours together move from run to run" : "One alone moves", 100 * comparison.chance));
  std::size_t told = 0;
  for (const Change& change : comparison.rows) told += change.is_told ? 1 : 0;
  if (comparison.whole) {
    const Change& whole = *comparison.whole;
    text += "\n" +
            wrapped(fmt::format("Ours, {} together: {} ({:+.1f} to {:+.1f} %): {}. {} by itself.\n",
                                counted(comparison.rows.size(), "rows"), percent(whole.ratio),
                                100 * (whole.ci95.lo - 1), 100 * (whole.ci95.hi - 1),
                                !whole.is_told    ? "no more than chance"
                                : whole.ratio > 1 ? "slower"
                                                  : "faster",
                                told == 0   ? "No row differs"
                                : told == 1 ? "One row differs"
                                            : fmt::format("{} rows differ", told)));
  } else {
    text += "\nNothing of ours is in all runs.\n";
  }
  const std::size_t shown = options.all ? comparison.rows.size() : told;
  if (shown > 0) {
    text += fmt::format("\n{:<36}{:>9}{:>10}{:>10}  {:<17}\n", "time", "old", "new", "change",
                        "95 % interval");
    for (std::size_t i = 0; i < shown; ++i) text += row_text(comparison.rows[i]);
  }
  for (const auto& [rows, where] :
       {std::pair{&comparison.only_old, "old"}, {&comparison.only_new, "new"}}) {
    if (!rows->empty())
      text += fmt::format("\n{} in {} runs only.\n", counted(rows->size(), "rows"), where);
  }
  return text;
}

Json to_json(const Change& change) {
  return {{"what", change.what},
          {"old_ns", change.old_ns},
          {"new_ns", change.new_ns},
          {"ratio", change.ratio},
          {"ci95", {change.ci95.lo, change.ci95.hi}},
          {"beyond_chance", change.is_told}};
}

void run(const Options& options) {
  const Limit limit = parse_limit(options.fail_if);
  const std::vector<RunFile> old_runs = load_all(options.old_runs, options.benchmark);
  const std::vector<RunFile> new_runs = load_all(options.new_runs, options.benchmark);
  const RunFile& first = old_runs.front();
  for (const std::vector<RunFile>* runs : {&old_runs, &new_runs}) {
    for (const RunFile& run : *runs) {
      if (run.benchmark != first.benchmark) {
        throw Error(Status::invalid,
                    fmt::format("{} is of bench {}, {} of bench {}", options.old_runs,
                                first.benchmark, options.new_runs, run.benchmark));
      }
      if (!options.anyway) check_comparable(first, run);
    }
  }
  const Comparison comparison = bench::compare_runs(old_runs, new_runs);
  bool fails = comparison.whole && exceeds(*comparison.whole, limit);
  for (const Change& change : comparison.rows) fails = fails || exceeds(change, limit);
  const auto name = [](const std::vector<RunFile>& runs, const std::string& place) {
    std::string commit = runs.front().commit;
    for (const RunFile& run : runs) {
      if (run.commit != commit) commit.clear();
    }
    return commit.empty() ? place : commit;
  };
  const auto noisy = [](const std::vector<RunFile>& runs) {
    return std::count_if(runs.begin(), runs.end(), [](const RunFile& run) { return run.noisy; });
  };
  const auto noise = std::pair(noisy(old_runs), noisy(new_runs));
  const std::string before = name(old_runs, options.old_runs);
  const std::string after = name(new_runs, options.new_runs);
  if (options.json) {
    Json json{{"benchmark", first.benchmark},
              {"commits", {before, after}},
              {"runs", {old_runs.size(), new_runs.size()}},
              {"noisy", {noise.first, noise.second}},
              {"peers", comparison.peers},
              {"drift", comparison.drift},
              {"chance", comparison.chance},
              {"whole", comparison.whole ? to_json(*comparison.whole) : Json()},
              {"rows", Json::array()},
              {"only_old", comparison.only_old},
              {"only_new", comparison.only_new},
              {"fails", fails}};
    for (const Change& change : comparison.rows) json["rows"].push_back(to_json(change));
    fmt::print("{}", format_json(json));
  } else {
    const bool several = old_runs.size() > 1;
    fmt::print("bench {}, {}\n{} -> {}{}\n\n{}", first.benchmark, first.machine, before, after,
               several ? fmt::format(", {} and {} runs", old_runs.size(), new_runs.size()) : "",
               to_text(comparison, several, options));
    if (noise.first + noise.second > 0) {
      fmt::print("\n{}",
                 wrapped(fmt::format("Do not trust this: {} of {} old and {} of {} new runs "
                                     "were noisy. Measure again on a quiet machine.\n",
                                     noise.first, old_runs.size(), noise.second, new_runs.size())));
    }
  }
  std::fflush(stdout);
  if (fails) std::exit(1);
}

}  // namespace

void add_compare(Command& app) {
  const auto options = std::make_shared<Options>();
  Command* const command = app.add_subcommand(
      "compare", "Say what got faster or slower between two runs of a benchmark, beyond chance");
  command
      ->add_option("old", options->old_runs,
                   "What bench barrier, lock or mpi wrote (JSON), or a folder of several runs")
      ->required();
  command->add_option("new", options->new_runs, "The same, of the build to be judged")->required();
  command->add_option("--benchmark", options->benchmark, "Of folders with several")
      ->one_of({"barrier", "lock", "mpi"});
  command->add_option("--fail-if", options->fail_if,
                      "Exit with 1 if ours together, or a row, got slower:PERCENT% (or faster:) "
                      "beyond chance");
  command->add_flag("--all", options->all, "Show every row, not only what differs");
  command->add_flag("--anyway", options->anyway, "Compare runs of different machines or settings");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "The others' implementations are the measure: nobody changed them. What they\n"
      "have in common is the machine's drift, and taken away. With one run of each\n"
      "build, how far they scatter is chance; with two or more, how far runs of one\n"
      "build lie apart. Something differs if that is less likely than one in twenty,\n"
      "over the whole and all rows together (Holm 1979). Run all with the same options\n"
      "and all peers, the two builds by turns.");
  command->callback([options] { run(*options); });
}

}  // namespace muster
