// SPDX-License-Identifier: BSD-3-Clause
// `muster machine`: descriptions of machines, made from latencies that others measured, or by
// measuring this one.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/named_machine.hpp"
#include "cli/output.hpp"
#include "cli/sim_common.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"
#include "sim/measure.hpp"
#include "sim/pair_matrix.hpp"
#include "topology/pu_set.hpp"

namespace muster {
namespace {

struct ImportOptions {
  std::string latencies;
  std::string topology;
  std::vector<std::string> cpus;
  std::string name;
  std::string source;
  std::string rmw = "ownership";
  std::string like;  ///< empty: like_otherwise
  std::string output;
};

constexpr const char* like_otherwise = "kunpeng920-2s";
/// Of the variance; below, the model would know next to nothing of the distances.
constexpr double explained_least = 0.6;
/// Beyond, something else ran while one of the two was measured.
constexpr double asymmetry_most = 0.2;
/// Beyond, a class has pairs of two distances.
constexpr double margin_of_one_distance = 0.5;

void print_classes(const sim::Distances& distances) {
  fmt::print("{:<10} {:>8} {:>9} {:>9} {:>9}\n", "innermost", "pairs", "median ns", "10 %", "90 %");
  for (const sim::DistanceClass& c : distances.classes) {
    fmt::print("{:<10} {:>8} {:>9.1f} {:>9.1f} {:>9.1f}\n", c.name(), c.pairs, c.median_ns,
               c.p10_ns, c.p90_ns);
  }
  if (distances.siblings_ns) {
    fmt::print("PUs of one core are {:.1f} ns apart; the model gives each rank a core.\n",
               *distances.siblings_ns);
  }
  fmt::print("Distance classes:");
  for (const sim::DistanceClass& c : distances.merged) {
    fmt::print(" {} {:.1f} ns", c.name(), c.median_ns);
  }
  fmt::print("; they explain {:.0f} % of the variance.\n", 100 * distances.explained);
  if (distances.classes.size() > 1 && distances.explained < explained_least) {
    note(
        "muster: that is little. Are the CPUs numbered as --cpus says, and is this the "
        "machine's topology?\n");
  }
  for (const sim::DistanceClass& c : distances.merged) {
    if (c.margin() <= margin_of_one_distance) continue;
    note(
        "muster: the pairs of {} are not of one distance: 10 to 90 % are {:.1f} to {:.1f} ns "
        "apart; the model has the median for all, with a margin that holds them.\n",
        c.name(), c.p10_ns, c.p90_ns);
  }
  if (distances.home) {
    fmt::print(
        "The lines' home was in package {}: elsewhere pairs of a package are as far apart as "
        "those of two.\n",
        *distances.home);
  }
}

void run_import(const ImportOptions& options) {
  sim::check_machine_name(options.name);
  const std::string& source = options.source.empty() ? options.latencies : options.source;
  if (printable(source) != source || source.find('|') != std::string::npos) {
    throw Error(Status::invalid,
                fmt::format("\"{}\" cannot stand in a machine file: give a --source of one line, "
                            "without \"|\", tabs and control characters",
                            printable(source)));
  }
  const sim::MachineModel like =
      sim::load_machine(options.like.empty() ? like_otherwise : options.like);
  note_nearer_outside(like.name, like.latencies);
  if (!options.output.empty()) expect_writable(options.output);
  const sim::PairMatrix matrix = sim::load_pair_matrix(options.latencies);
  const Topology topology = Topology::from_spec(options.topology);
  if (matrix.asymmetry > asymmetry_most) {
    note(
        "muster: the two directions of a pair differ by {:.0f} % in the median; their mean "
        "is taken. Was the machine quiet?\n",
        100 * matrix.asymmetry);
  }
  std::vector<unsigned> cpus;
  for (const std::string& some : options.cpus) {
    const std::vector<unsigned> next = PuSet::parse(some).to_vector();
    if (next.empty()) throw Error(Status::invalid, "--cpus: \"" + some + "\" names no CPU");
    cpus.insert(cpus.end(), next.begin(), next.end());
  }
  std::string inferred;
  if (cpus.empty()) {
    sim::Numbering numbering = sim::infer_numbering(matrix, topology);
    if (numbering.name != sim::usual_numberings(topology).front().name) {
      inferred = fmt::format(
          "Rows are taken for CPUs with {}, which explains more; --cpus says otherwise.\n",
          numbering.name);
    }
    cpus = std::move(numbering.cpus);
  }
  const sim::Distances distances = sim::distances_of(matrix, topology, cpus);
  sim::MachineSketch sketch;
  sketch.name = options.name;
  sketch.about = fmt::format("{} cores, imported from {}", topology.cores().size(), source);
  sketch.topology = topology_statement(options.topology, topology);
  sketch.ll_sc = options.rmw == "ll-sc";
  sketch.rmw_source = "assumed: --rmw, or its default";
  const sim::MachineModel machine =
      as_written_to(options.output, sim::imported_machine(like, sketch, distances, source));
  fmt::print("{}\n", sim::format_machine(machine));
  if (matrix.unmeasured > 0)
    fmt::print("{} of {} pairs have no time.\n", matrix.unmeasured,
               std::size_t{matrix.size} * (matrix.size - 1) / 2);
  fmt::print("{}", inferred);
  print_classes(distances);
  std::vector<sim::LatencyClass> found;
  for (const sim::DistanceClass& c : distances.classes) found.push_back({c.level, c.median_ns});
  note_nearer_outside(options.latencies, found);
  if (options.like.empty()) {
    note(
        "muster: all but topology and latencies is {}'s (calls, poll turns, caches, memory); "
        "--like names a machine that is more like yours.\n",
        like.name);
  }
  if (!options.output.empty()) write_machine(options.output, machine);
}

struct MeasureArguments {
  sim::MeasureOptions measure;
  bool json = false;
  std::string output;
};

std::string to_json(const sim::Measured& measured, const std::vector<sim::Closure>& closures) {
  nlohmann::ordered_json json;
  json["machine"] = measured.machine.name;
  json["flag_one_way_ns"] = measured.ping_pong_ns;
  json["rounds"] = measured.rounds;
  json["rounds_kept"] = measured.rounds_kept;
  json["closes"] = sim::all_close(closures);
  json["kinds"] = nlohmann::ordered_json::array();
  for (const sim::Closure& c : closures) {
    json["kinds"].push_back({{"kind", c.kind},
                             {"prediction", c.prediction},
                             {"holds", c.closes()},
                             {"good", c.good},
                             {"all", c.all},
                             {"tolerance", c.tolerance},
                             {"worst_error", c.worst},
                             {"worst", c.worst_label}});
  }
  json["results"] = nlohmann::ordered_json::array();
  for (const sim::MicroResult& result : measured.results) {
    json["results"].push_back({{"kind", sim::kind_of(result)},
                               {"label", result.what.label},
                               {"cores", result.what.cores},
                               {"count", result.what.count},
                               {"measured_ns", result.measured_ns},
                               {"modelled_ns", result.modelled_ns},
                               {"error", result.error()}});
  }
  json["description"] = sim::format_machine(measured.machine);
  return format_json(json);
}

std::string to_text(const sim::Measured& measured, const std::vector<sim::Closure>& closures) {
  std::string text = fmt::format(
      "A flag takes {:.0f} ns one way. Rounds kept: {} of {} (the machine was faster or "
      "slower in the others).\n\n",
      measured.ping_pong_ns, measured.rounds_kept, measured.rounds);
  const auto table = [&](const char* title, bool predictions) {
    text +=
        fmt::format("{:<47} {:>11} {:>11} {:>8}\n", title, "measured ns", "modelled ns", "error");
    for (const sim::MicroResult& result : measured.results) {
      if (result.barrier != predictions) continue;
      text += fmt::format("{:<47} {:>11.1f} {:>11.1f} {:>+6.1f} %\n", result.what.label,
                          result.measured_ns, result.modelled_ns, 100 * result.error());
    }
    for (const sim::Closure& c : closures) {
      if (c.prediction == predictions) text += sim::verdict(c) + "\n";
    }
    text += "\n";
  };
  table("closure: measured, and modelled with what follows", false);
  if (std::any_of(closures.begin(), closures.end(),
                  [](const sim::Closure& c) { return c.prediction; })) {
    table("prediction: barriers of two ranks", true);
  }
  if (!sim::all_close(closures)) {
    text +=
        "This description does not close: the model does not give back what was measured. Measure "
        "again when the machine is quiet; if it stays so, the model lacks something it does.\n\n";
  }
  return for_a_terminal(text) + sim::format_machine(measured.machine);
}

void run_measure(MeasureArguments& arguments) {
  sim::check_machine_name(arguments.measure.name);
  if (!arguments.output.empty()) expect_writable(arguments.output);
  if (std::string& spec = arguments.measure.topology; !spec.empty()) {
    spec = topology_statement(spec, Topology::from_spec(spec));
  }
  if (isatty(STDERR_FILENO) == 1) {
    arguments.measure.progress = [](const std::string& what) {
      note("\r{:<30}", what);
      std::fflush(stderr);
    };
  }
  sim::Measured measured = sim::measure_machine(arguments.measure);
  measured.machine = as_written_to(arguments.output, std::move(measured.machine));
  if (arguments.measure.progress) note("\r{:<30}\r", "");
  const std::vector<sim::Closure> closures = sim::closures_of(measured.results);
  write_and_print(
      [&] {
        if (!arguments.output.empty()) write_machine(arguments.output, measured.machine);
      },
      arguments.json ? to_json(measured, closures) : to_text(measured, closures));
}

}  // namespace

void add_machine(Command& app) {
  Command* const group =
      app.add_subcommand("machine", "Describe machines, for `muster sim` to model");
  group->require_subcommand(1);

  const auto import = std::make_shared<ImportOptions>();
  Command* command =
      group->add_subcommand("import", "Make a description from a matrix of core-to-core latencies");
  command
      ->add_option("--latencies", import->latencies,
                   "CSV without a header: the lower triangle, nanoseconds one way")
      ->required();
  command
      ->add_option("--topology", import->topology,
                   "hwloc's XML file or synthetic description of that machine")
      ->required();
  command
      ->add_option(
          "--cpus", import->cpus,
          "The CPU number of each row, as \"0-15,32\" (default: as the topology numbers them, or "
          "by packages in turn or siblings last if that explains more)")
      ->delimiter(',');
  command->add_option("--name", import->name, "The machine's name")->required();
  command->add_option("--source", import->source, "Who measured it, for the description");
  command->add_option("--rmw", import->rmw, "How atomics work there")
      ->one_of({"ownership", "ll-sc"})
      ->capture_default_str();
  command
      ->add_option("--like", import->like,
                   "The machine whose parameters stand for what latencies do not tell")
      ->listed({"machine"})
      ->or_file()
      ->default_str(like_otherwise);
  command->add_option("--output", import->output, "The description file");
  command->callback([import] { run_import(*import); });

  const auto measure = std::make_shared<MeasureArguments>();
  command = group->add_subcommand(
      "measure", "Make a description of this machine, by micro-benchmarks, and check it");
  command->add_option("--topology", measure->measure.topology,
                      "hwloc's XML file or synthetic description of this machine (default: this "
                      "machine's, if it is regular)");
  command->add_option("--name", measure->measure.name, "The machine's name")->capture_default_str();
  command->add_option("--rounds", measure->measure.rounds, "Each runs every benchmark once")
      ->check(Range(1U, 1000U))
      ->capture_default_str();
  command
      ->add_option("--cores-max", measure->measure.cores_max,
                   "Participants of the benchmarks that take many")
      ->check(Range(2U, 1024U))
      ->capture_default_str();
  command->add_flag("!--no-barriers", measure->measure.barriers,
                    "Do not measure barriers of two participants beside their predictions");
  command->add_flag("--json", measure->json,
                    "Print one JSON object: every benchmark, the verdicts, the description");
  command->add_option("--output", measure->output, "The description file");
  command->callback([measure] { run_measure(*measure); });
}

}  // namespace muster
