// SPDX-License-Identifier: BSD-3-Clause
// `muster sim validate`: measured beside modelled, and what the differences would cost.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/sim_common.hpp"
#include "cli/subcommands.hpp"
#include "sim/validate.hpp"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  MachineChoice machine;
  std::vector<std::string> measured;
  std::string naive_from;
  sim::Effort effort;
  bool json = false;
  std::string output;
};

Json share_json(const sim::Share& share) {
  return {{"good", share.good},
          {"all", share.all},
          {"share", share.all > 0 ? Json(double(share.good) / share.all) : Json(nullptr)}};
}

std::string to_json(const sim::MachineModel& machine, const Json& settings,
                    const std::vector<sim::Measurement>& measured, const sim::Validation& v) {
  Json json;
  json["machine"] = machine.name;
  json["settings"] = settings;
  Json& summary = json["summary"];
  summary["median_error"] = v.median_error;
  summary["rms_log_ratio"] = v.rms;
  summary["within_35_percent"] = share_json(v.within_35_percent);
  summary["within_interval"] = share_json(v.within_interval);
  summary["pairs_ordered"] = share_json(v.pairs_ordered);
  summary["mapping_directions"] = share_json(v.mapping_directions);
  if (v.naive_median_error) {
    summary["naive_median_error"] = *v.naive_median_error;
    summary["median_error_beside_naive"] = *v.median_error_beside_naive;
  }
  summary["median_error_by_seed"] = v.median_error_by_seed;
  json["picks"] = Json::array();
  for (const sim::Pick& pick : v.picks) {
    json["picks"].push_back({{"ranks", pick.ranks},
                             {"map_by", mapping_name(pick.map_by)},
                             {"chosen", pick.chosen},
                             {"best", pick.best},
                             {"regret", pick.regret}});
  }
  json["ablation"] = Json::array();
  for (const sim::Ablation& ablation : v.ablations) {
    json["ablation"].push_back(
        {{"without", ablation.what.empty() ? Json(nullptr) : Json(ablation.what)},
         {"rms_log_ratio", ablation.rms},
         {"median_error", ablation.median_error}});
  }
  json["results"] = Json::array();
  for (std::size_t n = 0; n < measured.size(); ++n) {
    json["results"].push_back({{"algorithm", measured[n].query.algorithm},
                               {"machine", machine.name},
                               {"ranks", measured[n].query.ranks},
                               {"map_by", mapping_name(measured[n].query.map_by)},
                               {"measured_us", measured[n].latency_us},
                               {"latency_us", v.modelled[n].latency_us},
                               {"latency_us_low", v.modelled[n].latency_us_low},
                               {"latency_us_high", v.modelled[n].latency_us_high},
                               {"error", v.modelled[n].latency_us / measured[n].latency_us - 1},
                               {"naive_us", v.naive_us[n] ? Json(*v.naive_us[n]) : Json(nullptr)}});
  }
  return format_json(json);
}

std::string share_text(const char* what, const sim::Share& share) {
  if (share.all == 0) return fmt::format("{:<42} none to judge\n", what);
  return fmt::format("{:<42} {} of {} ({:.0f} %)\n", what, share.good, share.all,
                     100.0 * share.good / share.all);
}

std::string to_text(const sim::MachineModel& machine, const std::vector<sim::Measurement>& measured,
                    const sim::Validation& v) {
  std::string text =
      wrapped(machine.name + ": " + machine.about) +
      fmt::format("\n\n{:<23} {:>5} {:<6} {:>8} {:>8} {:>12} {:>6} {:>5}\n", "algorithm", "ranks",
                  "map by", "measured", "modelled", "interval", "error", "naive");
  for (std::size_t n = 0; n < measured.size(); ++n) {
    const sim::Prediction& p = v.modelled[n];
    text +=
        fmt::format("{:<23} {:>5} {:<6} {:>8.2f} {:>8.2f} {:>12} {:>+4.0f} % {:>5}\n",
                    measured[n].query.algorithm, measured[n].query.ranks,
                    mapping_name(measured[n].query.map_by), measured[n].latency_us, p.latency_us,
                    fmt::format("{:.3g} - {:.3g}", p.latency_us_low, p.latency_us_high),
                    100 * (p.latency_us / measured[n].latency_us - 1),
                    v.naive_us[n] ? fmt::format("{:.3g}", *v.naive_us[n]) : "");
  }
  text += fmt::format("\n{:<42} {:.1f} %\n", "median error", 100 * v.median_error);
  text += fmt::format("{:<42} {:.3f}\n", "rms of the log ratios", v.rms);
  text += share_text("within 35 %", v.within_35_percent);
  text += share_text("measured inside the interval", v.within_interval);
  text += share_text("pairs over 15 % apart, ordered right", v.pairs_ordered);
  text += share_text("changes by mapping over 15 %, direction", v.mapping_directions);
  for (const sim::Pick& pick : v.picks) {
    const std::string about =
        fmt::format("the model's pick, {} ranks by {}", pick.ranks, mapping_name(pick.map_by));
    text += fmt::format("{:<42} ", about) +
            wrapped(fmt::format("{}: {:.1f} % over {}", pick.chosen, 100 * pick.regret, pick.best),
                    43) +
            "\n";
  }
  if (v.naive_median_error) {
    text += fmt::format("{:<42} {:.1f} % (the model, on the same: {:.1f} %)\n",
                        "median error of the naive rule", 100 * *v.naive_median_error,
                        100 * *v.median_error_beside_naive);
  }
  text += fmt::format("{:<42}", "median error with seeds 1, 2, 3");
  for (const double error : v.median_error_by_seed) text += fmt::format(" {:.1f} %", 100 * error);
  text += fmt::format("\n\n{:<26} {:>14} {:>14}\n", "without", "rms of ratios", "median error");
  for (const sim::Ablation& ablation : v.ablations) {
    text += fmt::format("{:<26} {:>14.3f} {:>12.1f} %\n",
                        ablation.what.empty() ? "(nothing)" : ablation.what, ablation.rms,
                        100 * ablation.median_error);
  }
  return text;
}

void run(const Options& options) {
  const sim::MachineModel machine = options.machine.load();
  const std::vector<sim::Measurement> measured = sim::load_measurements(options.measured);
  std::vector<sim::Measurement> known;
  if (!options.naive_from.empty()) known = sim::load_measurements(options.naive_from);
  const ResultFiles files{options.output, "validate", "plot_sim.py", ""};
  files.prepare();
  const sim::Validation v = sim::validate(machine, measured, known, options.effort);
  const std::string json =
      to_json(machine, options.machine.settings(machine, options.effort), measured, v);
  files.write(json, "", options.json ? json : to_text(machine, measured, v));
}

}  // namespace

void add_sim_validate(Command& sim) {
  const auto options = std::make_shared<Options>();
  Command* const command = sim.add_subcommand(
      "validate", "Put measured latencies beside the model's, and judge the model");
  options->machine.add_to(*command);
  command
      ->add_option("--measured", options->measured,
                   "CSVs with the columns algorithm, ranks, latency_us and perhaps map_by, a list")
      ->delimiter(',')
      ->required();
  command->add_option("--naive-from", options->naive_from,
                      "CSV of latencies at other ranks, which the naive rule scales: like P for "
                      "linear barriers, like log P for the others");
  command
      ->add_option("--members", options->effort.members,
                   "Settings of what is not known that the intervals span")
      ->check(Range(0U, 64U))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_option("--output", options->output,
                      "Folder for validate.json and a plot (PNG and SVG)");
  command->callback([options] { run(*options); });
}

}  // namespace muster
