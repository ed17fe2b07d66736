// SPDX-License-Identifier: BSD-3-Clause
// `muster sim reproduce`: the experiments of [K22], [P17] and [PS18], modelled, and what of the
// papers' claims the model bears out.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/sim_common.hpp"
#include "cli/subcommands.hpp"
#include "sim/reproduce.hpp"

namespace muster {
namespace {

struct Options {
  MachineChoice changes;
  sim::ReproduceOptions what;
  std::vector<std::string> papers;
  bool json = false;
  std::string output;
};

nlohmann::ordered_json to_json(const Options& options, const sim::Reproduction& all) {
  nlohmann::ordered_json json;
  json["settings"] = options.changes.settings();
  json["settings"].erase("machine");
  json["settings"].update(
      {{"papers", options.papers}, {"quick", options.what.quick}, {"seed", options.what.seed}});
  json["claims"] = nlohmann::ordered_json::array();
  for (const sim::Claim& claim : all.claims) {
    json["claims"].push_back({{"source", claim.source},
                              {"claim", claim.claim},
                              {"modelled", claim.modelled},
                              {"verdict", sim::verdict_name(claim.verdict)},
                              {"agrees_if", claim.rule}});
  }
  json["doubling_changes_percent_max"] = 100 * all.change_max;
  json["placements"] = {{"oak", all.placements_oak}, {"jet", all.placements_jet}};
  json["barriers"] = nlohmann::ordered_json::array();
  for (const sim::BarrierPoint& point : all.barriers) {
    json["barriers"].push_back(
        {{"algorithm", point.query.algorithm},
         {"ranks", point.query.ranks},
         {"map_by", mapping_name(point.query.map_by)},
         {"latency_us", point.latency_us},
         {"measured_us", point.measured_us ? nlohmann::ordered_json(*point.measured_us)
                                           : nlohmann::ordered_json(nullptr)}});
  }
  json["results"] = nlohmann::ordered_json::array();
  for (const sim::FigurePoint& point : all.points) {
    json["results"].push_back({{"figure", point.figure},
                               {"machine", point.machine},
                               {"variant", point.variant},
                               {"pattern", pattern_name(point.pattern)},
                               {"threads", point.threads},
                               {"placement", point.placement},
                               {"hierarchical", point.hierarchical},
                               {"throughput_ops_s", point.outcome.throughput_ops_s},
                               {"cache_misses_percent", point.outcome.cache_misses_percent},
                               {"far_memory_percent", point.outcome.far_memory_percent},
                               {"doubling_changes_percent", 100 * point.outcome.change}});
  }
  return json;
}

unsigned count(const sim::Reproduction& all, sim::Verdict verdict, const char* source = "") {
  return static_cast<unsigned>(
      std::count_if(all.claims.begin(), all.claims.end(), [&](const sim::Claim& claim) {
        return claim.verdict == verdict && claim.source.starts_with(source);
      }));
}

std::string summary(const sim::Reproduction& all) {
  std::string text = fmt::format("{} claims: {} agree, {} partly, {} disagree.", all.claims.size(),
                                 count(all, sim::Verdict::agrees), count(all, sim::Verdict::partly),
                                 count(all, sim::Verdict::disagrees));
  if (const unsigned fitted = count(all, sim::Verdict::agrees, "[K22]"); fitted > 0) {
    text += fmt::format(
        " Of those that agree {} are of [K22], to which the model is fitted (not by socket).",
        fitted);
  }
  if (all.placements_oak > 0) {
    text +=
        fmt::format(" {} placements on oak and {} on jet, all that are distinct up to symmetry.",
                    all.placements_oak, all.placements_jet);
  }
  if (!all.points.empty()) {
    text += fmt::format(" A window of twice the length changes a throughput by {:.1f} % at most.",
                        100 * all.change_max);
  }
  return wrapped(text) + "\n";
}

std::string to_text(const sim::Reproduction& all) {
  std::string text;
  for (const sim::Claim& claim : all.claims) {
    text += fmt::format("{:<10} ", sim::verdict_name(claim.verdict)) +
            wrapped(fmt::format("{}: {}\nmodelled: {}", claim.source, claim.claim, claim.modelled),
                    11) +
            "\n";
  }
  return text + "\n" + summary(all);
}

std::string to_markdown(const sim::Reproduction& all) {
  std::string text =
      "# The papers' experiments on the modelled Kunpeng, Oak and Jet\n\n"
      "Written by `muster sim reproduce --output DIR`; `doc/model.md` says what is modelled and "
      "why it differs where it does.\n\n" +
      summary(all) + "\n| | claim | modelled | verdict |\n|---|---|---|---|\n";
  for (const sim::Claim& claim : all.claims) {
    text += fmt::format("| {} | {} | {} | {} |\n", claim.source, claim.claim, claim.modelled,
                        sim::verdict_name(claim.verdict));
  }
  text += "\n\"Agrees\" means:\n\n";
  std::vector<std::pair<std::string, std::string>> rules;  // and whose they are
  for (const sim::Claim& claim : all.claims) {
    const auto known = std::find_if(rules.begin(), rules.end(),
                                    [&](const auto& rule) { return rule.first == claim.rule; });
    if (known == rules.end()) {
      rules.emplace_back(claim.rule, claim.source);
    } else if (known->second.find(claim.source) == std::string::npos) {
      known->second += "; " + claim.source;
    }
  }
  for (const auto& [rule, sources] : rules) text += fmt::format("- {}: {}.\n", sources, rule);
  return text;
}

void run(const Options& options) {
  const ResultFiles files{options.output, "reproduce", "plot_sim_lock.py", "md"};
  files.prepare();
  ProgressLine line;
  sim::ReproduceOptions what = options.what;
  what.papers = {options.papers.begin(), options.papers.end()};
  const sim::ReproduceMachines machines{options.changes.load("kunpeng920-2s"),
                                        options.changes.load("oak"), options.changes.load("jet")};
  const sim::Reproduction all =
      sim::reproduce(machines, what, shown_on(line, "the papers' figures"));
  line.clear();
  const std::string dumped = format_json(to_json(options, all));
  const std::string changes = options.changes.changes();
  const std::string said =
      changes.empty() ? "" : wrapped("The machines are changed: " + changes) + "\n\n";
  files.write(dumped, said + to_markdown(all), options.json ? dumped : said + to_text(all));
}

}  // namespace

void add_sim_reproduce(Command& sim) {
  const auto options = std::make_shared<Options>();
  Command* const command = sim.add_subcommand(
      "reproduce",
      "The experiments of [K22], [P17] and [PS18]: each claim, modelled, with a verdict");
  options->changes.add_changes_to(*command);
  options->papers = {options->what.papers.begin(), options->what.papers.end()};
  command
      ->add_option("--papers", options->papers, "Whose claims: K22 (barriers), P17, PS18 (locks)")
      ->delimiter(',')
      ->one_of(options->papers)
      ->capture_default_str();
  command->add_flag("--quick", options->what.quick,
                    "Fewer operations and points: seconds, and coarse");
  command->add_option("--seed", options->what.seed, "Of the indices and of ties")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->add_option("--output", options->output,
                      "Folder for reproduce.json, reproduce.md, and a plot of each figure");
  command->callback([options] { run(*options); });
}

}  // namespace muster
