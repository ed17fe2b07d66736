// SPDX-License-Identifier: BSD-3-Clause
// `muster measure`: how far each two CPUs are apart, and which levels that shows.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/heat_map.hpp"
#include "bench/matrix_levels.hpp"
#include "bench/pair_times.hpp"
#include "bench/report.hpp"
#include "bench/stop.hpp"
#include "cli/command.hpp"
#include "cli/named_machine.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"
#include "sim/pair_matrix.hpp"
#include "topology/sizes.hpp"

namespace muster {
namespace {

using bench::Groups;
using bench::Json;

struct Options {
  std::string cpus;
  std::optional<unsigned> rounds;
  std::string from;
  std::string machine;
  bool json = false;
  bool csv = false;
  std::string output;
};

/// Of the pairs that a named or a found level holds: less in common is none.
constexpr double seen_least = 0.5;

bool takes_colours() {
  const char* const terminal = secure_getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && secure_getenv("NO_COLOR") == nullptr &&
         terminal != nullptr && std::string_view(terminal) != "dumb";
}

/// What there is to tell of a machine's CPUs: measured here, or read.
struct Subject {
  std::string title;
  bench::PairTimes times;
  std::optional<Topology> topology;  ///< empty: nothing is known of it
  Sizes sizes;
  bench::FoundLevels found;
  std::vector<bench::NamedLevel> named;
  std::vector<bench::PairLevel> by_name;  ///< of each of `named`, and of all CPUs
};

/// Which of hwloc's levels groups the CPUs most like these do.
struct Likeness {
  const bench::NamedLevel* level = nullptr;
  double agreement = 0;
};

Likeness most_alike(const Subject& subject, const Groups& groups) {
  Likeness best;
  for (const bench::NamedLevel& level : subject.named) {
    const double agreement = bench::agreement(groups, level.groups);
    if (agreement > best.agreement) best = {&level, agreement};
  }
  return best;
}

std::size_t pairs_of(const sim::PairMatrix& matrix) {
  return std::size_t{matrix.size} * (matrix.size - 1) / 2;
}

// ---- where the times come from ----

Subject measure_here(const Options& options, const ResultFiles& files) {
  Subject subject;
  subject.topology = Topology::this_machine();
  subject.sizes = read_sizes("");
  PuSet cpus = subject.topology->pus();
  if (!options.cpus.empty()) {
    cpus = PuSet::parse(options.cpus);
    if (const PuSet outside = cpus - subject.topology->pus(); !outside.empty()) {
      throw Error(Status::invalid,
                  fmt::format("--cpus: {} cannot be used here; {} can", outside.to_string(),
                              subject.topology->pus().to_string()));
    }
  }
  if (cpus.count() < 2) {
    throw Error(options.cpus.empty() ? Status::unsupported : Status::invalid,
                fmt::format("CPU {} alone: a latency is between two. {}", cpus.to_string(),
                            options.cpus.empty() ? "Is this process bound (see `taskset -p $$`)?"
                                                 : "Name more."));
  }
  bench::stop_on_ctrl_c();
  files.prepare();
  ProgressLine line;
  subject.times = bench::measure_pairs({cpus.to_vector(), options.rounds.value_or(0)},
                                       [&](const bench::Progress& progress) {
                                         line.show(progress.share, progress.what, progress.left_s);
                                       });
  subject.title = bench::this_host().model;
  return subject;
}

Subject read_from(const Options& options) {
  Subject subject;
  subject.times.ns = sim::load_pair_matrix(options.from);
  subject.title = options.from;
  const unsigned size = subject.times.ns.size;
  if (options.machine.empty()) {
    for (unsigned row = 0; row < size; ++row) subject.times.cpus.push_back(row);
    return subject;
  }
  const NamedMachine machine = named_machine(options.machine);
  subject.topology = machine.topology;
  subject.times.cpus = sim::infer_numbering(subject.times.ns, machine.topology).cpus;
  const std::string spec = machine.model ? topology_spec(*machine.model) : options.machine;
  if (!machine.topology.source().starts_with("synthetic ")) subject.sizes = read_sizes(spec);
  return subject;
}

// ---- telling ----

std::string sizes_text(const std::vector<unsigned>& sizes) {
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  if (*least == *most) return fmt::format("{} of {}", sizes.size(), *most);
  return fmt::format("{} of {}-{}", sizes.size(), *least, *most);
}

std::string table_line(const std::string& name, const std::string& groups, const std::string& pairs,
                       const std::string& median, const std::string& p10, const std::string& p90,
                       const std::string& beside) {
  return fmt::format("{:<14}{:<13}{:>8}{:>9}{:>8}{:>8}{}{}\n", name, groups, pairs, median, p10,
                     p90, beside.empty() ? "" : "  ", beside);
}

std::string header(const std::string& name, const std::string& beside) {
  return "\n" + table_line(name, "groups", "pairs", "ns", "10 %", "90 %", beside);
}

std::string level_line(const std::string& name, const bench::PairLevel& level,
                       const std::string& beside) {
  const auto ns = [](double value) {
    return std::isnan(value) ? std::string("-") : fmt::format("{:.1f}", value);
  };
  return table_line(name, sizes_text(level.sizes), fmt::to_string(level.pairs), ns(level.median_ns),
                    ns(level.p10_ns), ns(level.p90_ns), beside);
}

/// As sim::Distances has it.
std::optional<unsigned> home_of(const Subject& subject) {
  try {
    return sim::distances_of(subject.times.ns, *subject.topology, subject.times.cpus).home;
  } catch (const Error&) {  // no two cores
    return {};
  }
}

/// Of pairs that two levels agree on; nothing if they agree on all.
std::string share_text(double agreement) {
  return agreement == 1 ? "" : fmt::format(", {:.0f} %", 100 * agreement);
}

std::string levels_text(const Subject& subject) {
  std::string text = header("in the times", subject.named.empty() ? "" : "as hwloc's");
  const auto& levels = subject.found.levels;
  for (std::size_t n = 0; n + 1 < levels.size(); ++n) {
    const Likeness alike = most_alike(subject, levels[n].groups);
    text +=
        level_line(fmt::format("level {}", n + 1), levels[n],
                   alike.level == nullptr ? "" : alike.level->name + share_text(alike.agreement));
  }
  text += level_line("all", levels.back(), "");
  if (subject.named.empty()) return text;
  text += header("by hwloc", "in the times");
  for (std::size_t n = 0; n < subject.named.size(); ++n) {
    std::string beside = "not seen";
    double best = seen_least;
    for (std::size_t l = 0; l + 1 < levels.size(); ++l) {
      const double agreement = bench::agreement(levels[l].groups, subject.named[n].groups);
      if (agreement < best) continue;
      best = agreement;
      beside = fmt::format("level {}{}", l + 1, share_text(agreement));
    }
    text += level_line(subject.named[n].name, subject.by_name[n], beside);
  }
  text += level_line("all", subject.by_name.back(), "");
  if (const std::optional<unsigned> home = home_of(subject)) {
    text +=
        wrapped(fmt::format("The lines' home was in package {}: elsewhere pairs of a package are "
                            "as far apart as those of two.",
                            *home)) +
        "\n";
  }
  return text;
}

std::string sizes_text(const Sizes& sizes) {
  std::string text;
  for (const CacheSize& cache : sizes.caches) {
    text += fmt::format("{}{} x {} {} KiB", text.empty() ? "caches: " : ", ", cache.count,
                        cache.level, cache.bytes >> 10);
  }
  text = text.empty() ? "" : wrapped(text) + "\n";
  const std::size_t nodes = sizes.nodes.size();
  constexpr std::size_t nodes_max = 16;
  if (nodes < 2) return text;
  if (nodes > nodes_max)
    return text + fmt::format("NUMA distances by the firmware: of {} nodes, see --json\n", nodes);
  text += "NUMA distances by the firmware (10: its own):\n";
  for (std::size_t n = 0; n < nodes; ++n) {
    text += fmt::format("{:>5}", sizes.nodes[n]);
    for (std::size_t m = 0; m < nodes; ++m)
      text += fmt::format("{:>4}", sizes.distances[n * nodes + m]);
    text += "\n";
  }
  return text;
}

/// How far half of a pair's times lie apart, in the median, and for the worst pair.
std::string spread_text(const bench::PairTimes& times) {
  std::vector<double> spreads;
  double worst = -1;
  std::string worst_pair;
  for (unsigned a = 0; a < times.ns.size; ++a) {
    for (unsigned b = 0; b < a; ++b) {
      if (std::isnan(times.ns.at(a, b))) continue;
      spreads.push_back((times.high_ns.at(a, b) - times.low_ns.at(a, b)) / times.ns.at(a, b));
      if (spreads.back() <= worst) continue;
      worst = spreads.back();
      worst_pair = fmt::format("CPUs {} and {}", times.cpus[b], times.cpus[a]);
    }
  }
  std::string text =
      fmt::format("The middle half of a pair's times, over the rounds, spans {:.1f} %",
                  100 * bench::median(spreads));
  if (spreads.size() > 1)
    text += fmt::format(" in the median, {:.1f} % at worst ({})", 100 * worst, worst_pair);
  return wrapped(text + ".") + "\n";
}

std::string import_hint(const Subject& subject, const std::string& csv) {
  std::string topology = "machine.xml";  // numbers the CPUs as the rows are
  std::string cpus;
  if (subject.times.cpus != subject.topology->pus().to_vector()) {
    cpus = fmt::format(" --cpus {}", fmt::join(subject.times.cpus, ","));
  } else {
    try {
      topology = fmt::format("\"{}\"", sim::synthetic_description(*subject.topology, "--topology"));
    } catch (const Error&) {  // its levels do not nest regularly
    }
  }
  return fmt::format(
      "A model of this machine, for `muster sim`:\n{}  muster machine import --latencies {} \\\n"
      "    --topology {}{} \\\n    --name this --output this.machine\n",
      topology == "machine.xml" ? "  lstopo machine.xml\n" : "", csv, topology, cpus);
}

std::string to_text(const Subject& subject) {
  const bench::PairTimes& times = subject.times;
  std::string text = wrapped(fmt::format("{}: {} CPUs, {}", subject.title, times.ns.size,
                                         counted(pairs_of(times.ns), "pairs")));
  if (times.seconds > 0) {
    const bool noisy = times.noise.noisy;
    text += "\n" +
            wrapped(fmt::format("{} in {:.1f} s, one pair at a time; {}{}",
                                counted(times.rounds, "rounds"), times.seconds,
                                bench::verdict(times.noise), noisy ? ": " + times.noise.why : ""));
  }
  text += "\n\n";
  if (times.ns.unmeasured > 0)
    text += fmt::format("Without a time: {}.\n", counted(times.ns.unmeasured, "pairs"));
  text += bench::heat_map(times.ns, times.cpus, subject.found.order, takes_colours());
  if (times.rounds > 1) text += spread_text(times);
  text += levels_text(subject);
  const std::string sizes = sizes_text(subject.sizes);
  return sizes.empty() ? text : text + "\n" + sizes;
}

/// The lower triangle, null where there is no time.
Json triangle(const sim::PairMatrix& matrix) {
  Json rows = Json::array();
  for (unsigned a = 0; a < matrix.size; ++a) {
    Json row = Json::array();
    for (unsigned b = 0; b < a; ++b) row.push_back(bench::rounded(matrix.at(a, b), 0.1));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string to_csv(const sim::PairMatrix& matrix) {
  std::string text;
  for (unsigned a = 0; a < matrix.size; ++a) {
    for (unsigned b = 0; b < matrix.size; ++b) {
      if (b > 0) text += ",";
      if (b < a && !std::isnan(matrix.at(a, b))) text += fmt::format("{:.1f}", matrix.at(a, b));
    }
    text += "\n";
  }
  return text;
}

Json level_json(const bench::PairLevel& level, const std::vector<unsigned>& cpus) {
  Json groups = Json::array();
  for (std::size_t n = 0; n < level.sizes.size(); ++n) groups.push_back(Json::array());
  for (std::size_t row = 0; row < cpus.size(); ++row)
    groups[level.groups[row]].push_back(cpus[row]);
  return {{"pairs", level.pairs},
          {"median_ns", bench::rounded(level.median_ns, 0.1)},
          {"p10_ns", bench::rounded(level.p10_ns, 0.1)},
          {"p90_ns", bench::rounded(level.p90_ns, 0.1)},
          {"groups", std::move(groups)}};
}

Json to_json(const Subject& subject, const std::string& from) {
  const bench::PairTimes& times = subject.times;
  const bench::Host host = bench::this_host();
  const bool measured = from.empty();
  Json json{{"benchmark", "measure"},
            {"title", subject.title},
            {"from", measured ? Json() : Json(from)},
            {"machine", measured ? bench::machine_to_json(host, times.ns.size) : Json()},
            {"build", bench::build_to_json(host)},
            {"rounds", measured ? Json(times.rounds) : Json()},
            {"seconds", measured ? bench::rounded(times.seconds, 0.1) : Json()},
            {"noise", measured ? bench::noise_to_json(times.noise) : Json()},
            {"stopped", bench::stop_asked()},
            {"unmeasured", times.ns.unmeasured},
            {"cpus", times.cpus},
            {"order", subject.found.order},
            {"levels", Json::array()},
            {"hwloc", Json::array()},
            {"caches", Json::array()},
            {"numa", {{"nodes", subject.sizes.nodes}, {"distances", subject.sizes.distances}}},
            {"ns", triangle(times.ns)}};
  for (std::size_t n = 0; n < subject.found.levels.size(); ++n) {
    const bench::PairLevel& level = subject.found.levels[n];
    const bool all = n + 1 == subject.found.levels.size();
    const Likeness alike = all ? Likeness{} : most_alike(subject, level.groups);
    Json row = level_json(level, times.cpus);
    row["hwloc"] = alike.level == nullptr ? Json() : Json(alike.level->name);
    row["agreement"] = alike.level == nullptr ? Json() : bench::rounded(alike.agreement, 1e-4);
    json["levels"].push_back(std::move(row));
  }
  for (std::size_t n = 0; n < subject.by_name.size(); ++n) {
    Json row{{"name", n < subject.named.size() ? subject.named[n].name : "all"}};
    row.update(level_json(subject.by_name[n], times.cpus));
    json["hwloc"].push_back(std::move(row));
  }
  for (const CacheSize& cache : subject.sizes.caches) {
    json["caches"].push_back(
        {{"level", cache.level}, {"bytes", cache.bytes}, {"count", cache.count}});
  }
  if (measured) {
    json["low_ns"] = triangle(times.low_ns);
    json["high_ns"] = triangle(times.high_ns);
  }
  return json;
}

void run(const Options& options) {
  if (!options.machine.empty() && options.from.empty()) {
    throw Error(Status::invalid, "--machine goes with --from: this machine is asked itself");
  }
  if (!options.from.empty() && (!options.cpus.empty() || options.rounds)) {
    throw Error(Status::invalid, "--from is measured already: without --cpus and --rounds");
  }
  const ResultFiles files{options.output, "measure", "plot_measure.py"};
  Subject subject;
  if (!options.from.empty()) {
    subject = read_from(options);
    files.prepare();
  } else {
    subject = measure_here(options, files);
    if (subject.times.ns.unmeasured == pairs_of(subject.times.ns)) bench::end_if_stopped();
  }
  subject.found = bench::find_levels(subject.times.ns);
  std::vector<Groups> groups;
  if (subject.topology) subject.named = bench::levels_on(*subject.topology, subject.times.cpus);
  for (const bench::NamedLevel& level : subject.named) groups.push_back(level.groups);
  if (subject.topology) subject.by_name = bench::classify_pairs(subject.times.ns, groups);

  const std::string json = format_json(to_json(subject, options.from));
  const std::string csv = to_csv(subject.times.ns);
  files.write(json, csv, options.json ? json : options.csv ? csv : to_text(subject));
  if (!options.output.empty() && options.from.empty())
    note("{}", import_hint(subject, files.path("csv")));
  bench::end_if_stopped();
}

}  // namespace

void add_measure(Command& app) {
  const auto options = std::make_shared<Options>();
  Command* const command = app.add_subcommand(
      "measure", "Draw how far each two CPUs are apart, and find the levels that this shows");
  command->add_option("--cpus", options->cpus,
                      "These CPUs alone, as \"0-15,32\" (default: all that may be used)");
  command
      ->add_option("--rounds", options->rounds,
                   "How often each pair is measured; the median counts (default: 5, and as often "
                   "as fits into 2 s)")
      ->check(Range(1U, 100000U));
  command->add_option(
      "--from", options->from,
      "Measure nothing: draw this matrix, a CSV as core-to-core latency tools write it");
  add_machine_option(*command, options->machine, machine_option, "none; goes with --from");
  Option* const json = command->add_flag("--json", options->json, "Print one JSON object");
  command->add_flag("--csv", options->csv, "Print the matrix, as `muster machine import` takes it")
      ->excludes(json);
  command->add_option("--output", options->output,
                      "Folder for measure.json, measure.csv, and a heat map (PNG and SVG)");
  command->footer(
      "Two threads pass a flag to and fro; half of a round trip is one way. One pair at a time, "
      "for two at once would share links and the clock rate. Takes 2 ms a pair and round, of which "
      "there are five: 80 s for 128 CPUs. A level is where the next CPUs are a tenth farther. "
      "`muster machine measure` makes a model of this machine, from more than pairs. Ctrl-C keeps "
      "the rounds that are whole.");
  command->callback([options] { run(*options); });
}

}  // namespace muster
