// SPDX-License-Identifier: BSD-3-Clause
// `muster list`: every name that can be asked for, and what it stands for.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "barrier/base_barriers.hpp"
#include "barrier/openmp_peers.hpp"
#include "barrier/registry.hpp"
#include "bench/contestant.hpp"
#include "bench/lock_team.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"
#include "lock/registry.hpp"
#include "machine/hardware.hpp"
#include "sim/machine_model.hpp"
#include "topology/levels.hpp"
#include "topology/topology.hpp"
#include "wait/policy.hpp"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

std::string_view champion_name(Champion champion) {
  switch (champion) {
    case Champion::nobody:
      return "nobody";
    case Champion::rank0:
      return "rank 0";
    case Champion::last_to_arrive:
      return "last to arrive";
  }
  return "";
}

std::string_view style_name(locks::Style style) {
  switch (style) {
    case locks::Style::direct:
      return "its client";
    case locks::Style::combining:
      return "the client that has the lock";
    case locks::Style::server:
      return "a server";
    case locks::Style::adaptive:
      return "its client, the one that has the lock, or a server";
  }
  return "";
}

/// A name of some kind, with what is known of it in the order in which it is shown.
Json item(std::string_view kind, std::string_view name, const Json& facts) {
  Json result{{"kind", kind}, {"name", name}};
  result.update(facts);
  return result;
}

void add_algorithms(Json& results) {
  Json rules = Json::array();
  for (const Rule& rule : rules_of_auto()) {
    rules.push_back({{"when", rule.when}, {"takes", rule.takes}, {"since", rule.since}});
  }
  results.push_back(
      item("algorithm", "auto",
           {{"about", "chosen by rule; `muster explain` says why"}, {"rules", std::move(rules)}}));
  for (const std::string_view name : barrier_names()) {
    const Traits& traits = traits_of(name);
    Json facts{{"champion", champion_name(traits.champion)},
               {"splits", traits.splits},
               {"cost", traits.cost},
               {"source", traits.source}};
    const std::string variants =
        fmt::format("{}{}", parse_algorithm(name).uses_groups() ? "-LEVEL[-LEVEL...]" : "",
                    traits.radix != 0 ? ":RADIX" : "");
    if (!variants.empty()) facts["variants"] = std::string(name) + variants;
    results.push_back(item("algorithm", name, facts));
  }
}

void add_compared(Json& results) {
  const auto add = [&](const char* kind, const char* where, const Traits& traits) {
    results.push_back(item(kind, traits.name,
                           {{"about", std::string("for comparison: ") + where},
                            {"champion", champion_name(traits.champion)},
                            {"splits", traits.splits},
                            {"cost", traits.cost},
                            {"source", traits.source}}));
  };
  for_each_base_barrier<Hardware>([&]<class B>() {
    add("message barrier", "sim, bench barrier, an MPI's messages", B::traits);
  });
  for_each_openmp_peer<Hardware>(
      [&]<class B>() { add("OpenMP's barrier", "sim, check", B::traits); });
}

void add_locks(Json& results) {
  for (const std::string_view name : locks::lock_names()) {
    const locks::Traits& traits = locks::traits_of(name);
    results.push_back(item("lock", name,
                           {{"executed_by", style_name(traits.style)},
                            {"fair", traits.fair},
                            {"cost", traits.cost},
                            {"source", traits.source}}));
  }
}

void add_levels(Json& results) {
  const std::vector<LevelKind> standard = wanted_levels({});
  for (const LevelKind kind :
       {LevelKind::core, LevelKind::l1, LevelKind::l2, LevelKind::l3, LevelKind::numa,
        LevelKind::group, LevelKind::die, LevelKind::package}) {
    const bool by_default = std::find(standard.begin(), standard.end(), kind) != standard.end();
    results.push_back(item("level", level_name(kind), {{"by_default", by_default}}));
  }
}

void add_machines(Json& results) {
  for (const auto& [name, text] : sim::shipped_machines()) {
    results.push_back(
        item("machine", name, {{"about", sim::load_machine(std::string(name)).about}}));
  }
}

void add_parameters(Json& results) {
  for (const sim::ParameterInfo& info : sim::parameter_table()) {
    results.push_back(item("parameter", info.name,
                           {{"unit", info.unit},
                            {"from", info.min},
                            {"to", info.max},
                            {"optional", info.optional},
                            {"about", info.meaning}}));
  }
}

void add_mappings(Json& results) {
  const auto add = [&](std::string_view name, std::string_view about) {
    results.push_back(item("mapping", name, {{"about", about}}));
  };
  add(mapping_name(Mapping::core), "rank i on core i");
  add(mapping_name(Mapping::numa), "rank i on NUMA node i mod n, next core there");
  add(mapping_name(Mapping::socket), "rank i on package i mod n, next core there");
  add("none", "ranks are not bound, or nobody says where");
}

void add_wait_policies(Json& results) {
  const auto add = [&](std::string_view name, std::string_view about) {
    static_cast<void>(WaitPolicy::by_name(name, 1, 1));  // throws if there is none
    results.push_back(item("wait", name, {{"about", about}}));
  };
  add("auto", "spins, or yields if CPUs are short, as long as that pays, then sleeps");
  add("spin", "never gives up the CPU");
  add("yield", "gives up the CPU at once, never sleeps");
  add("sleep", "sleeps at once");
  add("spin-yield", "spins, then yields, never sleeps");
  add("spin-yield-sleep", "spins, then yields, then sleeps");
  add("yield-sleep", "yields, then sleeps");
}

void add_others(Json& results) {
  for (const bench::Other& other : bench::others()) {
    if (other.kind == bench::Other::hidden) continue;
    Json modes = Json::array();
    if (other.threads) modes.push_back("threads");
    if (other.processes) modes.push_back("processes");
    const std::string missing = bench::why_missing(other);
    results.push_back(item(other.kind == bench::Other::peer ? "peer" : "reference", other.name,
                           {{"modes", std::move(modes)},
                            {"about", other.about},
                            {"available", missing.empty()},
                            {"missing", missing.empty() ? Json(nullptr) : Json(missing)}}));
  }
}

/// What `muster bench lock` has beside the locks above: what people use today, then the rest.
void add_other_locks(Json& results) {
  const auto& ours = locks::lock_names();
  for (const bool peers : {true, false}) {
    for (const bench::LockEntry& entry : bench::lock_entries()) {
      const bool is_peer = entry.kind == bench::LockEntry::peer;
      if (is_peer != peers || std::find(ours.begin(), ours.end(), entry.name) != ours.end()) {
        continue;
      }
      const bool available = entry.package.empty();
      results.push_back(
          item(peers ? "lock peer" : "lock reference", entry.name,
               {{"about", entry.about},
                {"available", available},
                {"missing", available ? Json(nullptr) : Json("install " + entry.package)}}));
    }
  }
}

Json all_items() {
  Json results = Json::array();
  add_algorithms(results);
  add_compared(results);
  add_levels(results);
  add_machines(results);
  add_mappings(results);
  add_wait_policies(results);
  add_others(results);
  add_locks(results);
  add_other_locks(results);
  add_parameters(results);
  return results;
}

constexpr std::size_t kFactsColumn = 26;

std::string to_text(const Json& results) {
  std::string text;
  std::string kind;
  for (const Json& entry : results) {
    if (entry.at("kind") != kind) {
      kind = entry.at("kind").get<std::string>();
      text += fmt::format("{}{}\n", text.empty() ? "" : "\n",
                          kind == "wait"        ? "wait policies"
                          : kind == "lock"      ? "locks (line transfers a section, contended)"
                          : kind == "parameter" ? "parameters of a modelled machine (sim --set)"
                                                : kind + "s");
    }
    std::string facts;
    const auto add = [&](const std::string& fact) { facts += (facts.empty() ? "" : "; ") + fact; };
    if (const std::string unit = entry.value("unit", ""); !unit.empty()) facts = unit + ": ";
    if (entry.contains("about")) facts += entry.at("about").get<std::string>();
    if (entry.contains("cost")) {
      add(entry.at("cost").get<std::string>());
      if (kind == "lock") {
        facts += "\nexecuted by " + entry.at("executed_by").get<std::string>();
        if (entry.at("fair").get<bool>()) add("first come, first served");
      } else {
        facts += "\nchampion: " + entry.at("champion").get<std::string>();
        if (entry.at("splits").get<bool>()) add("splits into arrive and depart");
        if (entry.contains("variants")) add("also " + entry.at("variants").get<std::string>());
      }
      facts += "\n" + entry.at("source").get<std::string>();
    }
    if (entry.contains("by_default") && entry.at("by_default").get<bool>()) add("by default");
    if (entry.contains("modes") && entry.at("modes").size() == 1) {
      add(entry.at("modes").at(0).get<std::string>() + " only");
    }
    if (entry.contains("missing") && !entry.at("missing").is_null()) {
      add(entry.at("missing").get<std::string>());
    }
    const std::string name = fmt::format("  {:<24}{}", entry.at("name").get<std::string>(),
                                         wrapped(facts, kFactsColumn));
    text += name.substr(0, name.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> listed_names(const std::vector<std::string>& kinds) {
  static const Json items = all_items();
  std::vector<std::string> names;
  for (const Json& entry : items) {
    const auto kind = entry.at("kind").get<std::string>();
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end())
      names.push_back(entry.at("name").get<std::string>());
  }
  return names;
}

void add_list(Command& app) {
  Command* const command = app.add_subcommand(
      "list",
      "List algorithms, machines, levels, mappings, wait policies, locks, peers and the "
      "model's parameters");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print one JSON object");
  command->callback([json] {
    const Json results = all_items();
    fmt::print("{}", *json ? format_json(Json{{"results", results}}) : to_text(results));
  });
}

}  // namespace muster
