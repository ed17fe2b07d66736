// SPDX-License-Identifier: BSD-3-Clause
// `muster tune`: the barrier that fits a machine, searched in the model; of this one tried, too.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/barrier_run.hpp"
#include "bench/report.hpp"
#include "bench/stop.hpp"
#include "cli/command.hpp"
#include "cli/named_machine.hpp"
#include "cli/output.hpp"
#include "cli/sim_common.hpp"
#include "cli/subcommands.hpp"
#include "fitting/profile.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"
#include "machine/usable_cpus.hpp"
#include "sim/measure.hpp"
#include "sim/tune.hpp"
#include "topology/text_file.hpp"

namespace muster {
namespace {

/// With `--machine` neither is used: nothing of it is here.
constexpr unsigned rounds_default = 15;
constexpr double seconds_default = 2;

struct Options {
  MachineChoice machine;
  TeamChoice teams{{}, {}};
  sim::TuneEffort effort;
  std::optional<unsigned> rounds;
  std::optional<double> seconds;
  std::string profile;
  bool json = false;
  bool here() const { return machine.name.empty(); }
};

/// One barrier of a team that ran on this machine.
struct Trial {
  sim::Predicted predicted;
  bench::Row measured;  ///< ok, or why there is no time
};
/// The winner, then the registered barriers that were predicted to be the fastest.
struct Trials {
  std::vector<Trial> all;
  bench::Noise noise;
  std::size_t taken = 0;
};

/// Ctrl-C: what whole teams have found is kept.
struct Stopped {};
void stop_if_asked() {
  if (bench::stop_asked()) throw Stopped{};
}

/// Powers of two and the whole machine, unless teams are named.
std::vector<std::pair<unsigned, Mapping>> teams_on(TeamChoice teams,
                                                   const sim::MachineModel& machine) {
  const auto cores = static_cast<unsigned>(machine.shape->cores().size());
  if (teams.ranks.empty()) {
    for (unsigned ranks = 2; ranks < cores; ranks *= 2) teams.ranks.push_back(ranks);
    teams.ranks.push_back(cores);
  }
  if (teams.map_by.empty()) {
    teams.map_by = {"core"};
    if (machine.shape->numa_nodes() > 1) teams.map_by.emplace_back("numa");
  }
  return teams.on(machine);
}

sim::MachineModel measured_here(const Options& options, ProgressLine& progress) {
  sim::MeasureOptions measure;
  measure.rounds = options.rounds.value_or(rounds_default);
  measure.barriers = false;  // the trials say more
  measure.progress = [&](const std::string& what) { progress.show(0, what); };
  return options.machine.changed(sim::measure_machine(measure).machine);
}

/// Threads are measured here. On a busy machine their polls may take as long as an MPI's.
bool are_of_mpi(const Options& options, const sim::MachineModel& machine) {
  const auto sets_polls = [](const std::string& set) { return set.starts_with("poll-turn="); };
  return makes_progress(machine) &&
         (!options.here() || std::ranges::any_of(options.machine.set, sets_polls));
}

/// `best`: as sim::tune() gives them, of one team.
Trials try_here(const sim::MachineModel& machine, const sim::Predicted& best, double seconds,
                const std::function<void(double, const std::string&)>& tell) {
  constexpr std::size_t others = 4;
  const auto any = [](const Algorithm&) { return true; };
  bench::RunOptions run;
  Trials trials;
  for (sim::Predicted& row : sim::beside_best(machine, best.query, others, any)) {
    run.algorithms.push_back(row.query.algorithm);
    trials.all.push_back({std::move(row), {}});
  }
  run.participants = {best.query.ranks};
  run.map_by = mapping_name(best.query.map_by);
  run.peers = {"none"};
  run.seconds = seconds;
  const bench::RunResults results = bench::run_barriers(
      run, [&](const bench::Progress& progress) { tell(progress.share, progress.what); });
  stop_if_asked();
  trials.noise = results.noise;
  for (const bench::Row& row : results.rows) {
    for (Trial& trial : trials.all) {
      if (row.ours && row.algorithm == trial.predicted.query.algorithm) trial.measured = row;
    }
  }
  std::vector<const bench::Row*> rows;
  for (const Trial& trial : trials.all) rows.push_back(&trial.measured);
  trials.taken = bench::surely_fastest(rows, trials.noise);
  return trials;
}

std::string to_text(const Trials& trials) {
  const sim::Query& team = trials.all.front().predicted.query;
  std::string text = fmt::format("\n{} by {}, measured on this machine{}\n{:>9}  {:>8}   {}\n",
                                 counted(team.ranks, "ranks"), mapping_name(team.map_by),
                                 trials.noise.noisy ? ", which was not quiet" : "", "predicted",
                                 "measured", "interval, us");
  for (const auto& [predicted, row] : trials.all) {
    const std::string name = predicted.query.algorithm;
    text += fmt::format("{:>9.2f}  ", predicted.prediction.latency_us);
    const bench::Summary& ns = row.latency_ns;
    text += row.status == bench::RowStatus::ok
                ? fmt::format("{:>8.2f}   {:>6.2f} to {:<6.2f}", ns.median / 1000,
                              ns.ci95.lo / 1000, ns.ci95.hi / 1000)
                : fmt::format("{:>27}", bench::row_status_name(row.status));
    text += fmt::format("  {}{}\n", name.size() > 46 ? "\n    " : "", name);
  }
  if (trials.taken > 0) {
    text += wrapped(fmt::format("{} was faster here than what the model had found: it is taken.",
                                trials.all[trials.taken].predicted.query.algorithm)) +
            "\n";
  }
  return text;
}

nlohmann::ordered_json to_json(const Trials& trials) {
  nlohmann::ordered_json rows;
  for (std::size_t n = 0; n < trials.all.size(); ++n) {
    const auto& [predicted, row] = trials.all[n];
    const bool good = row.status == bench::RowStatus::ok;
    const auto us = [&](double ns) {
      return good ? nlohmann::ordered_json(bench::rounded(ns / 1000, 1e-4)) : nullptr;
    };
    rows.push_back({{"algorithm", predicted.query.algorithm},
                    {"ranks", predicted.query.ranks},
                    {"map_by", mapping_name(predicted.query.map_by)},
                    {"predicted_us", predicted.prediction.latency_us},
                    {"status", bench::row_status_name(row.status)},
                    {"measured_us", us(row.latency_ns.median)},
                    {"measured_us_low", us(row.latency_ns.ci95.lo)},
                    {"measured_us_high", us(row.latency_ns.ci95.hi)},
                    {"noisy", trials.noise.noisy},
                    {"taken", n == trials.taken}});
  }
  return rows;
}

/// What the result goes by, defaults included.
nlohmann::ordered_json asked_for(const Options& options,
                                 const std::vector<std::pair<unsigned, Mapping>>& teams) {
  nlohmann::ordered_json json = options.machine.settings();
  if (options.here()) json["machine"] = nullptr;
  for (const auto& [ranks, mapping] : teams)
    json["teams"].push_back({{"ranks", ranks}, {"map_by", mapping_name(mapping)}});
  json["starts"] = options.effort.starts;
  json["seed"] = options.effort.final.seed;
  if (!options.here()) return json;
  json["rounds"] = options.rounds.value_or(rounds_default);
  json["seconds"] = options.seconds.value_or(seconds_default);
  return json;
}

/// What is there already stays, but for the teams that are found anew.
Profile read_profile(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return {};
  return parse_profile(read_text_file(path, "profile"), "profile '" + path + "'");
}

/// `best`: as sim::tune() gives them, of one team. `taken`: what was faster here.
void add_team(const sim::MachineModel& machine, const std::vector<sim::Predicted>& best,
              const sim::Predicted* taken, std::vector<Profile::Team>& teams) {
  const sim::Predicted& first = taken != nullptr ? *taken : best.front();
  const unsigned ranks = first.query.ranks;
  Profile::Team team{
      .participants = ranks,
      .spread = spread_of(*machine.shape, machine.shape->map_ranks(first.query.map_by, ranks)),
      .algorithm = first.query.algorithm,
      .us = first.prediction.latency_us};
  const auto other = std::find_if(best.begin(), best.end(), [](const sim::Predicted& row) {
    return parse_algorithm(row.query.algorithm).name != "scheduled";
  });
  if (taken == nullptr && other != best.begin() && other != best.end()) {
    team.other = other->query.algorithm;
    team.other_us = other->prediction.latency_us;
  }
  std::erase_if(teams, [&](const Profile::Team& old) {
    return old.participants == team.participants && old.spread == team.spread;
  });
  teams.push_back(std::move(team));
}

void run(const Options& options) {
  if (!options.here() && (options.rounds || options.seconds)) {
    throw Error(Status::invalid,
                "--rounds and --seconds go without --machine: they are about this machine");
  }
  if (!options.profile.empty()) {
    static_cast<void>(read_profile(options.profile));  // or throws
    std::error_code error;  // what cannot be made cannot be written either, which is told
    std::filesystem::create_directories(std::filesystem::path(options.profile).parent_path(),
                                        error);
    expect_writable(options.profile);
  }
  ProgressLine progress;
  const sim::MachineModel machine =
      options.here() ? measured_here(options, progress) : options.machine.load();
  const auto teams = teams_on(options.teams, machine);
  // Those of `bench barrier` make no MPI's progress.
  const bool of_mpi = are_of_mpi(options, machine);
  const bool can_try = options.here() && !of_mpi;
  const unsigned tried_here =
      can_try ? std::min(usable_cpus(), static_cast<unsigned>(machine.shape->cores().size())) : 0;
  const auto keep = [&](const std::vector<sim::Predicted>& best, const sim::Predicted* taken) {
    if (options.profile.empty()) return;
    const FolderLock alone(options.profile);
    Profile profile = read_profile(options.profile);  // another one may have written meanwhile
    add_team(machine, best, taken, profile.teams_of(*machine.shape, of_mpi));
    write_file(options.profile, format_profile(profile));
  };
  // As many ranks, as long it takes.
  double all = 0;
  for (const auto& [ranks, mapping] : teams) all += ranks;
  double done = 0;
  std::vector<sim::Predicted> rows;
  std::vector<Trials> trials;
  bench::stop_on_ctrl_c();
  try {
    for (const auto& [ranks, mapping] : teams) {
      const bool tries = ranks <= tried_here;
      const std::string team = fmt::format("{} ranks by {}", ranks, mapping_name(mapping));
      const auto tell = [&, of = ranks](double share, const std::string& what) {
        progress.show((done + share * of) / all, team + ": " + what);
      };
      const auto best = sim::tune(
          machine, {"", ranks, mapping}, options.effort, [&](double share, unsigned tried) {
            stop_if_asked();
            tell(tries ? share / 2 : share, fmt::format("{} barriers tried", tried));
          });
      rows.insert(rows.end(), best.begin(), best.end());
      keep(best, nullptr);
      if (tries) {
        trials.push_back(
            try_here(machine, best.front(), options.seconds.value_or(seconds_default),
                     [&](double share, const std::string& what) { tell((1 + share) / 2, what); }));
        const std::size_t taken = trials.back().taken;
        if (taken > 0) keep(best, &trials.back().all[taken].predicted);
      }
      done += ranks;
    }
  } catch (const Stopped&) {
    if (rows.empty()) bench::end_if_stopped();
  }
  progress.clear();
  if (!options.profile.empty()) note("Written: {}\n", printable(options.profile));
  if (options.json) {
    nlohmann::ordered_json json = sim_rows(machine, {}, rows);
    json["asked"] = asked_for(options, teams);
    for (const Trials& each : trials) {
      for (auto& row : to_json(each)) json["here"].push_back(std::move(row));
    }
    fmt::print("{}", format_json(json));
  } else {
    fmt::print("{}", sim_rows_text(machine, rows));
    for (const Trials& each : trials) fmt::print("{}", to_text(each));
  }
  std::fflush(stdout);
  bench::end_if_stopped();
}

}  // namespace

void add_tune(Command& app) {
  const auto options = std::make_shared<Options>();
  Command* const command =
      app.add_subcommand("tune", "Compose the barrier that fits a machine, in the model");
  options->machine.add_to(*command, "this one, which is measured");
  options->teams.add_to(*command, "powers of two, and one per core",
                        "core, and numa where NUMA nodes are several");
  command
      ->add_option("--starts", options->effort.starts,
                   "Recipes that the search begins with on each set of levels")
      ->check(Range(1U, 5U))
      ->capture_default_str();
  command->add_option("--seed", options->effort.final.seed, "Of the model's runs")
      ->capture_default_str();
  command
      ->add_option("--rounds", options->rounds,
                   fmt::format("Of measuring this machine, as `muster machine measure` does "
                               "(default: {})",
                               rounds_default))
      ->check(Range(1U, 1000U));
  command
      ->add_option("--seconds", options->seconds,
                   fmt::format("How long a team of this machine tries its barriers (default: {})",
                               seconds_default))
      ->check(Range(0.1, 3600.0));
  command->add_option(
      "--profile", options->profile,
      "Keep the best of each team in this file, beside what it has of others. `auto` takes what "
      "stands in $MUSTER_PROFILE, else in ~/.config/muster/profile, else in /etc/muster/profile");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Without --machine this machine is measured first, which takes some seconds. Where each rank "
      "has a core, the winner and the best registered barriers then run here in turns, and what is "
      "surely faster than the winner is kept instead. The profile is written team by team: Ctrl-C "
      "keeps what is whole.");
  command->callback([options] { run(*options); });
}

}  // namespace muster
