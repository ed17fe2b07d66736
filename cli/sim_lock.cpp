// SPDX-License-Identifier: BSD-3-Clause
// `muster sim lock`: the papers' lock benchmark on a modelled machine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/report.hpp"
#include "bench/stop.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/sim_common.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"
#include "placement/placer.hpp"
#include "sim/lock_predict.hpp"
#include "topology/text_file.hpp"

namespace muster {
namespace {

struct Options {
  MachineChoice machine;
  std::vector<std::string> locks{"rcl"};
  std::vector<std::string> patterns{"sequential", "strided", "random"};
  std::vector<unsigned> threads{2, 4};
  std::string init = "default";
  std::string affinity = "apart";
  std::string memory = "default";
  std::string placements = "one";
  std::optional<unsigned> server;
  std::optional<unsigned> allocator;
  std::uint64_t array = 500'000'000;
  std::uint64_t stride = 20;
  double readers = 0;  ///< percent
  sim::LockEffort effort;
  unsigned members = 0;
  bool json = false;
  bool csv = false;
  std::string output;
};

struct Row {
  sim::LockQuery query;
  std::string placement;
  double share = 1;  ///< --affinity none: of the time
  sim::LockOutcome outcome;
  // --members: what is not known about the machine leaves open.
  double least_ops_s = 0;
  double most_ops_s = 0;
  unsigned fastest_in = 0;  ///< settings, of the rows with the same pattern and as many threads
};

/// Where everybody sits, for so many threads: the placements asked for, with their weights.
class Places {
 public:
  Places(const Options& options, const CoreTree& tree) : options_(options), tree_(tree) {
    for (const unsigned core : {options.allocator.value_or(0), options.server.value_or(0)}) {
      if (core < tree.cores()) continue;
      throw Error(Status::invalid,
                  fmt::format("core {} is none of this machine's: they are 0 to {}", core,
                              tree.cores() - 1));
    }
    const bool all = options.placements == "all";
    const bool chooses = options.affinity == "hierarchical" || options.affinity == "none";
    if (options.server && !all && !chooses) {
      throw Error(Status::invalid, "--server: with --affinity " + options.affinity +
                                       " the placement says where the server is");
    }
    if (options.allocator && (all || !chooses)) {
      throw Error(Status::invalid,
                  "--allocator: with " +
                      (all ? "--placements all" : "--affinity " + options.affinity) +
                      " the placement says where the array is");
    }
  }

  std::vector<sim::WeightedPlacement> of(unsigned threads, bool serves) const {
    std::vector<sim::WeightedPlacement> all;
    if (!serves && threads >= tree_.cores() && !from_file()) {
      all = on_all_cores(threads);
    } else if (options_.placements == "all") {
      all = sim::all_placements(tree_, threads, options_.server);
    } else {
      all = asked(threads);
    }
    // Who has no server runs on the same cores, and has nobody whose memory would be bound.
    std::vector<sim::WeightedPlacement> distinct;
    std::set<std::string> known;
    for (sim::WeightedPlacement& each : all) {
      if (serves) each.placement = with_memory(each.placement);
      if (!serves) each.placement.server.reset();
      const std::string key = sim::placement_key(tree_, each.placement);
      if (known.insert(key).second) {
        distinct.push_back(each);
        continue;
      }
      for (sim::WeightedPlacement& before : distinct) {
        if (sim::placement_key(tree_, before.placement) == key) before.weight += each.weight;
      }
    }
    return distinct;
  }

 private:
  sim::LockPlacement with_memory(const sim::LockPlacement& placement) const {
    if (options_.init == "numa") return sim::with_bound_memory(tree_, placement);
    if (options_.memory == "aware") return sim::with_aware_memory(tree_, placement);
    return placement;
  }

  /// The core that RCLLockInitNUMA chooses, or whoever calls RCLLockInitDefault.
  unsigned server_core(unsigned threads) const {
    if (options_.server) return *options_.server;
    if (options_.init == "numa") return Placer(tree_).add_server(ServerPolicy::pack).core;
    return *sim::apart_placement(tree_, threads).server;
  }

  bool from_file() const {
    const std::string& of = options_.affinity;
    return options_.placements != "all" && of != "apart" && of != "hierarchical" && of != "none";
  }

  /// Of threads that leave no core to a server.
  std::vector<sim::WeightedPlacement> on_all_cores(unsigned threads) const {
    sim::LockPlacement placement;
    for (unsigned t = 0; t < threads; ++t) {
      placement.threads.push_back(tree_.order()[t % tree_.cores()]);
    }
    placement.memory = tree_.numa_of(options_.allocator.value_or(0));
    if (options_.placements != "all") return {{placement, 1}};
    std::vector<sim::WeightedPlacement> all;
    for (const NumaCores& numa : tree_.numa_nodes()) {
      placement.memory = tree_.numa_of(numa.cores.front());
      if (numa.os_index) all.push_back({placement, 1});
    }
    for (sim::WeightedPlacement& each : all) each.weight /= static_cast<double>(all.size());
    return all;
  }

  std::vector<sim::WeightedPlacement> asked(unsigned threads) const {
    const unsigned memory = tree_.numa_of(options_.allocator.value_or(0));
    if (options_.affinity == "apart") {
      return {{sim::apart_placement(tree_, threads), 1}};
    }
    if (options_.affinity == "hierarchical") {
      return {{sim::hierarchical_placement(tree_, threads, server_core(threads), memory), 1}};
    }
    if (options_.affinity == "none") {
      return sim::all_placements(tree_, threads, server_core(threads), memory);
    }
    if (!std::filesystem::exists(options_.affinity)) {
      throw Error(Status::unknown_name,
                  fmt::format("--affinity takes apart, hierarchical, none, or a file with a "
                              "placement: there is no file '{}'",
                              options_.affinity));
    }
    const std::string text = read_text_file(options_.affinity, "placement");
    return {{sim::parse_placement(text, options_.affinity, tree_, threads), 1}};
  }

  const Options& options_;
  const CoreTree& tree_;
};

using Json = nlohmann::ordered_json;

Json to_json(const Options& options, const sim::MachineModel& machine, const std::vector<Row>& rows,
             std::size_t settings) {
  Json json;
  json["machine"] = machine.name;
  json["about"] = machine.about;
  json["predicted"] = true;
  json["array"] = options.array;
  json["window"] = options.effort.window;
  json["settings"] = options.machine.settings();
  json["settings"]["seed"] = options.effort.seed;
  json["settings"]["warm_up"] = options.effort.warm_up;
  json["settings"]["window"] = options.effort.window;
  json["settings"]["members"] = settings - 1;
  json["stopped"] = bench::stop_asked();
  json["results"] = Json::array();
  for (const Row& row : rows) {
    json["results"].push_back(
        {{"lock", row.query.lock},
         {"machine", machine.name},
         {"threads", row.query.placement.threads.size()},
         {"pattern", pattern_name(row.query.pattern)},
         {"stride", row.query.pattern == Pattern::strided ? Json(options.stride) : Json(nullptr)},
         {"readers_percent", options.readers},
         {"init", options.init},
         {"affinity", options.placements == "all" ? "all" : options.affinity},
         {"memory", options.memory},
         {"placement", row.placement},
         {"share", row.share},
         {"throughput_ops_s", row.outcome.throughput_ops_s},
         {"latency_ns_mean", row.outcome.waits.mean_ns},
         {"latency_ns_p99", row.outcome.waits.p99_ns},
         {"latency_ns_max", row.outcome.waits.longest_ns},
         {"fairness", row.outcome.waits.most_to_fewest},
         {"cache_misses_percent", row.outcome.cache_misses_percent},
         {"private_misses_percent", row.outcome.private_misses_percent},
         {"far_memory_percent", row.outcome.far_memory_percent},
         {"doubling_changes_percent", 100 * row.outcome.change}});
    if (settings == 1) continue;
    json["results"].back()["throughput_ops_s_low"] = row.least_ops_s;
    json["results"].back()["throughput_ops_s_high"] = row.most_ops_s;
    json["results"].back()["fastest_in"] = row.fastest_in;
  }
  return json;
}

/// The members of each row, in the order and under the names of the JSON.
std::string to_csv(const Json& json) {
  std::string text;
  for (const auto& row : json.at("results")) {
    std::string names;
    std::string values;
    for (const auto& [name, value] : row.items()) {
      names += (names.empty() ? "" : ",") + name;
      if (!values.empty()) values += ',';
      values += value.is_number_float() ? fmt::format("{:.6g}", value.get<double>())
                                        : bench::csv_field(value);
    }
    if (text.empty()) text = names + ",predicted\n";
    text += values + ",true\n";
  }
  return text;
}

bool starves(const Row& row) { return std::isinf(row.outcome.waits.most_to_fewest); }

/// Broken after each "|", and where nothing else breaks it.
std::string in_lines(const std::string& placement) {
  std::string lines;
  int unbroken = 0;
  for (const char c : placement) {
    lines += c;
    unbroken = c == ' ' ? 0 : unbroken + 1;
    if (c != '|' && unbroken < 74) continue;
    lines += '\n';
    unbroken = 0;
  }
  return lines;
}

/// Where a placement is too wide to stand in its row, its number does, and it is told below: parts
/// of the machine in lines of their own, broken between caches.
std::string to_text(const sim::MachineModel& machine, const std::vector<Row>& rows,
                    std::size_t settings) {
  std::size_t lock_width = 4;
  for (const Row& row : rows) lock_width = std::max(lock_width, row.query.lock.size());
  const std::string titles =
      fmt::format("{:<{}} {:<11}{:>7} {:>9} {:>8} {:>5} {:>7}  ", "lock", lock_width, "pattern",
                  "threads", "Mops/s", "misses %", "far %", "doubled");
  std::vector<std::string> wide;
  for (const Row& row : rows) {
    if (titles.size() + row.placement.size() > 79 &&
        std::find(wide.begin(), wide.end(), row.placement) == wide.end())
      wide.push_back(row.placement);
  }
  const auto place = [&](const std::string& placement) {
    const auto at = std::find(wide.begin(), wide.end(), placement);
    return at == wide.end() ? placement : fmt::format("[{}]", at - wide.begin() + 1);
  };
  std::string text = wrapped(fmt::format("{}: {}\nPredicted by the model, not measured.",
                                         machine.name, machine.about)) +
                     "\n\n" + titles + "where\n";
  bool any_starves = false;
  for (const Row& row : rows) {
    const sim::LockOutcome& o = row.outcome;
    any_starves = any_starves || starves(row);
    text += fmt::format("{:<{}} {:<11}{:>7} {:>9.3f}{}{:>8.1f} {:>5.0f} {:>+6.1f}%  {}\n",
                        row.query.lock, lock_width, pattern_name(row.query.pattern),
                        row.query.placement.threads.size(), o.throughput_ops_s / 1e6,
                        starves(row) ? '!' : ' ', o.cache_misses_percent, o.far_memory_percent,
                        100 * o.change, place(row.placement));
  }
  text += '\n';
  for (const std::string& placement : wide) {
    text += fmt::format("{:<5}", place(placement)) + wrapped(in_lines(placement), 5) + "\n";
  }
  if (any_starves) text += "! a thread never got the lock: no winner, whatever its sections.\n";
  text +=
      "S server, w thread (a digit: so many), . nobody, m the array's memory.\n"
      "misses: accesses to the array that no cache of the core and its die held.\n"
      "far: lines from another NUMA node's memory; not a server's with --memory aware.\n"
      "doubled: what the first half of the window says more than the whole.\n\n";
  if (settings > 1) {
    text += fmt::format("{:<{}} {:<11}{:>7}  {:<19}{:<11} {}\n", "lock", lock_width, "pattern",
                        "threads", "interval", "fastest in", "where");
    for (const Row& row : rows) {
      text +=
          fmt::format("{:<{}} {:<11}{:>7}  {:<19}{:<11} {}\n", row.query.lock, lock_width,
                      pattern_name(row.query.pattern), row.query.placement.threads.size(),
                      fmt::format("{:.3f} to {:.3f}", row.least_ops_s / 1e6, row.most_ops_s / 1e6),
                      fmt::format("{} of {}", row.fastest_in, settings), place(row.placement));
    }
    text +=
        "\ninterval: Mops/s, over settings of what is not known about the machine.\n"
        "fastest in: so many of these, of the rows in which no thread starves.\n\n";
  }
  text += fmt::format("{:<{}} {:<11}{:>7} {:>9}{:>9}{:>9}{:>13}\n", "lock", lock_width, "pattern",
                      "threads", "mean", "p99", "longest", "most/fewest");
  for (const Row& row : rows) {
    const sim::LockWaits& waits = row.outcome.waits;
    text += fmt::format("{:<{}} {:<11}{:>7} {:>9}{:>9}{:>9}{:>13.3g}\n", row.query.lock, lock_width,
                        pattern_name(row.query.pattern), row.query.placement.threads.size(),
                        bench::format_ns(waits.mean_ns), bench::format_ns(waits.p99_ns),
                        bench::format_ns(waits.longest_ns), waits.most_to_fewest);
  }
  text +=
      "\nmean, p99, longest: from a section's call until it is done, or the window's end.\n"
      "most/fewest: sections of the busiest thread over those of the least busy one.\n";
  return text;
}

/// --affinity none: threads wander. What a row says is the mean over all placements; of waits but
/// for their mean, the worst.
std::vector<Row> averaged(const std::vector<Row>& rows) {
  std::vector<Row> means;
  for (const Row& row : rows) {
    const bool same =
        !means.empty() && means.back().query.lock == row.query.lock &&
        means.back().query.pattern == row.query.pattern &&
        means.back().query.placement.threads.size() == row.query.placement.threads.size();
    if (!same) {
      means.push_back(row);
      means.back().placement = "mean of all";
      means.back().share = 0;
      means.back().outcome = {};
    }
    means.back().share += row.share;
    sim::LockOutcome& mean = means.back().outcome;
    for (double sim::LockOutcome::*value :
         {&sim::LockOutcome::throughput_ops_s, &sim::LockOutcome::change,
          &sim::LockOutcome::cache_misses_percent, &sim::LockOutcome::private_misses_percent,
          &sim::LockOutcome::far_memory_percent}) {
      mean.*value += row.share * row.outcome.*value;
    }
    mean.waits.mean_ns += row.share * row.outcome.waits.mean_ns;
    for (double sim::LockWaits::*value :
         {&sim::LockWaits::p99_ns, &sim::LockWaits::longest_ns, &sim::LockWaits::most_to_fewest}) {
      mean.waits.*value = std::max(mean.waits.*value, row.outcome.waits.*value);
    }
  }
  if (!means.empty() && means.back().share < 0.999) means.pop_back();  // Ctrl-C came between
  for (Row& mean : means) mean.share = 1;
  return means;
}

/// Rows of the machine itself, with what those of its other settings say.
std::vector<Row> with_intervals(const std::vector<std::vector<Row>>& of_settings) {
  std::vector<Row> rows = of_settings.front();
  for (Row& row : rows) row.least_ops_s = row.most_ops_s = row.outcome.throughput_ops_s;
  for (const std::vector<Row>& setting : of_settings) {
    for (std::size_t n = 0; n < rows.size(); ++n) {
      const double ops_s = setting[n].outcome.throughput_ops_s;
      rows[n].least_ops_s = std::min(rows[n].least_ops_s, ops_s);
      rows[n].most_ops_s = std::max(rows[n].most_ops_s, ops_s);
      const auto beats = [&](const Row& other) {
        return other.query.pattern == rows[n].query.pattern &&
               other.query.placement.threads.size() == rows[n].query.placement.threads.size() &&
               !starves(other) && other.outcome.throughput_ops_s > ops_s;
      };
      if (!starves(setting[n]) && std::none_of(setting.begin(), setting.end(), beats)) {
        ++rows[n].fastest_in;
      }
    }
  }
  return rows;
}

std::vector<std::string> locks_of(const std::vector<std::string>& asked) {
  std::vector<std::string> names;
  for (const std::string& name : asked) {
    if (name == "all") {
      names.insert(names.end(), sim::modelled_locks().begin(), sim::modelled_locks().end());
    } else {
      static_cast<void>(sim::wants_server(name));  // throws for a name that is none
      names.push_back(name);
    }
  }
  return names;
}

void run(const Options& options) {
  const sim::MachineModel machine = options.machine.load();
  const CoreTree tree(*machine.shape);
  const Places places(options, tree);
  std::vector<Row> rows;
  for (const std::string& lock : locks_of(options.locks)) {
    for (const std::string& pattern : options.patterns) {
      for (const unsigned threads : options.threads) {
        const bool serves =
            sim::wants_server(lock) || (sim::may_have_server(lock) && threads < tree.cores());
        for (const sim::WeightedPlacement& each : places.of(threads, serves)) {
          Row row;
          row.query = {lock, parse_pattern(pattern), options.array, options.stride, each.placement};
          row.query.readers = options.readers / 100;
          row.placement = sim::placement_text(tree, each.placement);
          row.share = each.weight;
          rows.push_back(std::move(row));
        }
      }
    }
  }
  const std::vector<sim::MachineModel> members = sim::ensemble_of(machine, options.members);
  if (members.size() <= options.members) {
    note("{} has {} other settings, not {}\n", machine.name, members.size() - 1, options.members);
  }
  std::vector<sim::LockBatch> batches;
  for (const sim::MachineModel& member : members) {
    batches.push_back({member, tree, {}});
    for (const Row& row : rows) batches.back().queries.push_back(row.query);
  }
  const ResultFiles files{options.output, "sim-lock", "plot_sim_lock.py"};
  files.prepare();
  ProgressLine line;
  bench::stop_on_ctrl_c();
  const auto outcomes = sim::predict_locks(batches, options.effort, shown_on(line, machine.name));
  line.clear();
  std::vector<std::vector<Row>> of_settings;
  for (const std::vector<sim::LockOutcome>& setting : outcomes) {
    if (setting.size() < rows.size() && !of_settings.empty()) break;
    rows.resize(setting.size());
    for (std::size_t n = 0; n < rows.size(); ++n) rows[n].outcome = setting[n];
    const bool wander = options.affinity == "none" && options.placements != "all";
    of_settings.push_back(wander ? averaged(rows) : rows);
  }
  rows = with_intervals(of_settings);
  if (rows.empty()) bench::end_if_stopped();

  const Json json = to_json(options, machine, rows, of_settings.size());
  const std::string dumped = format_json(json);
  files.write(dumped, to_csv(json),
              options.json  ? dumped
              : options.csv ? to_csv(json)
                            : to_text(machine, rows, of_settings.size()));
  bench::end_if_stopped();
}

}  // namespace

void add_sim_lock(Command& sim) {
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  Command* const command =
      sim.add_subcommand("lock",
                         "How many critical sections a second locks manage there, and how long "
                         "threads wait, by who sits where");
  o.machine.add_to(*command);
  std::vector<std::string> mutexes = sim::modelled_locks();
  std::erase_if(mutexes, [](const std::string& name) { return !name.starts_with("mutex-"); });
  command
      ->add_option("--locks", o.locks,
                   fmt::format("By name, a list: the locks of `muster list` but pthread-mutex, and "
                               "{}; all",
                               fmt::join(mutexes, ", ")))
      ->words({"all"})
      ->words(sim::modelled_locks())
      ->delimiter(',')
      ->default_str("rcl");
  command->add_option("--pattern", o.patterns, "sequential, strided, random; a list")
      ->words(pattern_names())
      ->delimiter(',')
      ->default_str("sequential,strided,random");
  command->add_option("--stride", o.stride, "Words from one to the next, strided")
      ->check(Range<std::uint64_t>(1, std::uint64_t{1} << 31))
      ->capture_default_str();
  command
      ->add_option("--readers", o.readers,
                   "Percent of the sections that only read, which a lock with readers executes "
                   "side by side")
      ->check(Range(0.0, 100.0))
      ->capture_default_str();
  command->add_option("--threads", o.threads, "How many, a list")
      ->delimiter(',')
      ->check(Range(1U, 4096U))
      ->default_str("2,4");
  command
      ->add_option("--init", o.init,
                   "default: the server's core is named (--server, --affinity); numa: "
                   "RCLLockInitNUMA chooses it where it is not, and binds memory to its NUMA node")
      ->one_of({"default", "numa"})
      ->capture_default_str();
  command
      ->add_option("--affinity", o.affinity,
                   "apart: the array and the first threads on the first NUMA node, the server on "
                   "the second [P17]; hierarchical: RCLHierarchicalAffinity; none: threads wander, "
                   "the mean of all placements; or a file")
      ->words({"apart", "hierarchical", "none"})
      ->or_file()
      ->capture_default_str();
  command
      ->add_option("--placements", o.placements,
                   "one: as --affinity says; all: every placement of server, threads and array "
                   "that is distinct up to the machine's symmetry")
      ->one_of({"one", "all"})
      ->capture_default_str();
  command
      ->add_option("--memory", o.memory,
                   "default: the array is where its allocating thread is; aware: RCLAwareMalloc, "
                   "on the server's NUMA node")
      ->one_of({"default", "aware"})
      ->capture_default_str();
  command->add_option("--server", o.server, "The server's core");
  command
      ->add_option("--allocator", o.allocator,
                   "The allocating thread's core, with --affinity hierarchical or none")
      ->default_str("0");
  command->add_option("--array", o.array, "Words of 4 bytes in the array")
      ->check(Range<std::uint64_t>(16, (std::uint64_t{1} << 32) - 1))
      ->capture_default_str();
  command->add_option("--window", o.effort.window, "Operations that count; as many again follow")
      ->check(Range(1U, 100'000'000U))
      ->capture_default_str();
  command->add_option("--warm-up", o.effort.warm_up, "Operations before")
      ->check(Range(1U, 100'000'000U))
      ->capture_default_str();
  command
      ->add_option("--members", o.members,
                   "Settings of what is not known about the machine: 8 give intervals, and say in "
                   "how many each lock is the fastest, in nine times the time")
      ->check(Range(0U, 64U))
      ->capture_default_str();
  command->add_option("--seed", o.effort.seed, "Of the indices and of ties")->capture_default_str();
  Option* const json = command->add_flag("--json", o.json, "Print one JSON object");
  command->add_flag("--csv", o.csv, "Print the rows as CSV")->excludes(json);
  command->add_option("--output", o.output,
                      "Folder for sim-lock.json, sim-lock.csv, and a plot (PNG and SVG)");
  command->footer(
      "Threads increment words of one array, each inside a critical section [P17, PS18]. A file "
      "for --affinity has the lines `server CORE`, `allocator CORE` and `threads CORE,CORE,...`, "
      "cores by number. More threads than cores: under locks with a server, in turn.");
  command->callback([options] { run(*options); });
}

}  // namespace muster
