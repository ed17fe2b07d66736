// SPDX-License-Identifier: BSD-3-Clause
// `muster tune`: the barrier that fits a machine, searched in the model.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/command.hpp"
#include "cli/named_machine.hpp"
#include "cli/output.hpp"
#include "cli/sim_common.hpp"
#include "cli/subcommands.hpp"
#include "fitting/profile.hpp"
#include "sim/tune.hpp"
#include "topology/text_file.hpp"

namespace muster {
namespace {

struct Options {
  MachineChoice machine;
  TeamChoice teams;
  sim::TuneEffort effort;
  std::string profile;
  bool json = false;
};

/// What is there already stays, but for the teams that are found anew.
Profile read_profile(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return {};
  return parse_profile(read_text_file(path, "profile"), "profile '" + path + "'");
}

/// `best`: as sim::tune() gives them, of one team.
void add_team(const sim::MachineModel& machine, const std::vector<sim::Predicted>& best,
              std::vector<Profile::Team>& teams) {
  const sim::Query& first = best.front().query;
  Profile::Team team{
      .participants = first.ranks,
      .spread = spread_of(*machine.shape, machine.shape->map_ranks(first.map_by, first.ranks)),
      .algorithm = first.algorithm,
      .us = best.front().prediction.latency_us};
  const auto other = std::find_if(best.begin(), best.end(), [](const sim::Predicted& row) {
    return parse_algorithm(row.query.algorithm).name != "scheduled";
  });
  if (other != best.begin() && other != best.end()) {
    team.other = other->query.algorithm;
    team.other_us = other->prediction.latency_us;
  }
  std::erase_if(teams, [&](const Profile::Team& old) {
    return old.participants == team.participants && old.spread == team.spread;
  });
  teams.push_back(std::move(team));
}

void run(const Options& options) {
  const sim::MachineModel machine = options.machine.load();
  const auto teams = options.teams.on(machine);
  Profile profile;
  if (!options.profile.empty()) {
    profile = read_profile(options.profile);
    std::error_code error;  // what cannot be made cannot be written either, which is told
    std::filesystem::create_directories(std::filesystem::path(options.profile).parent_path(),
                                        error);
    expect_writable(options.profile);
  }
  std::vector<Profile::Team>& known = profile.teams_of(*machine.shape, makes_progress(machine));
  ProgressLine progress;
  std::vector<sim::Predicted> rows;
  for (std::size_t done = 0; done < teams.size(); ++done) {
    const unsigned ranks = teams[done].first;
    const Mapping mapping = teams[done].second;
    const auto tell = [&](double share, unsigned tried) {
      progress.show(
          (static_cast<double>(done) + share) / static_cast<double>(teams.size()),
          fmt::format("{} ranks by {}: {} barriers tried", ranks, mapping_name(mapping), tried));
    };
    const auto best = sim::tune(machine, {"", ranks, mapping}, options.effort, tell);
    rows.insert(rows.end(), best.begin(), best.end());
    add_team(machine, best, known);
  }
  progress.clear();
  if (!options.profile.empty()) write_and_tell(options.profile, format_profile(profile));
  fmt::print("{}", options.json ? sim_rows_json(machine, rows) : sim_rows_text(machine, rows));
}

}  // namespace

void add_tune(Command& app) {
  const auto options = std::make_shared<Options>();
  Command* const command =
      app.add_subcommand("tune", "Compose the barrier that fits a machine, in the model");
  options->machine.add_to(*command);
  options->teams.add_to(*command);
  command
      ->add_option("--starts", options->effort.starts,
                   "Recipes that the search begins with on each set of levels")
      ->check(Range(1U, 5U))
      ->capture_default_str();
  command->add_option(
      "--profile", options->profile,
      "Keep the best of each team in this file, beside what it has of others. `auto` takes what "
      "stands in $MUSTER_PROFILE, else in ~/.config/muster/profile, else in /etc/muster/profile");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { run(*options); });
}

}  // namespace muster
