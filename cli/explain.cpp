// SPDX-License-Identifier: BSD-3-Clause
// `muster explain`: what a barrier with these options would be, and why, without running it.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"
#include "muster/muster.h"
#include "topology/topology.hpp"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  unsigned participants = 2;
  std::string algorithm = "auto";
  std::string wait = "auto";
  std::string topology;
  std::string map_by = "none";
  std::vector<std::string> bindings;
  bool shared = false;
  bool split = false;
  bool json = false;
};

void throw_if_failed(int status) {
  if (status != MUSTER_OK) throw Error(static_cast<Status>(status), muster_last_error());
}

/// What stands beside the names of the lines, which are 14 columns wide, wrapped.
std::string in_columns(const std::string& text) {
  constexpr std::size_t kNames = 14;
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    const bool is_fact = line.size() > kNames && line[kNames - 1] == ' ' && line[0] != ' ';
    result += is_fact ? line.substr(0, kNames) + wrapped(line.substr(kNames), kNames) : line;
    result += "\n";
  }
  return result;
}

void explain(const Options& asked) {
  muster_options options;
  muster_options_init(&options);
  options.participants = asked.participants;
  options.algorithm = asked.algorithm.c_str();
  options.wait = asked.wait.c_str();
  if (!asked.topology.empty()) options.topology = asked.topology.c_str();
  if (asked.map_by != "none") options.map_by = asked.map_by.c_str();
  std::vector<std::string> texts;
  std::vector<const char*> bindings;
  if (!asked.bindings.empty()) {
    if (asked.bindings.size() != asked.participants) {
      throw Error(Status::invalid,
                  fmt::format("--bindings takes one binding for each of {} participants, none for "
                              "an unbound one; here are {}",
                              asked.participants, asked.bindings.size()));
    }
    // Whatever the algorithm makes of them: PUs that do not exist are a mistake.
    const Topology topology =
        Topology::from_spec_or_environment(asked.topology, Topology::Cpus::of_host);
    for (const PuSet& pus : topology.read_bindings(asked.bindings)) {
      texts.push_back(pus.empty() ? "" : pus.to_string());
    }
    for (const std::string& text : texts) bindings.push_back(text.c_str());
    options.bindings = bindings.data();
  }
  if (asked.shared) options.flags |= MUSTER_SHARED;
  if (asked.split) options.flags |= MUSTER_SPLIT;

  muster_barrier* handle = nullptr;
  throw_if_failed(muster_barrier_create(&handle, &options));
  const std::unique_ptr<muster_barrier, void (*)(muster_barrier*)> barrier(handle,
                                                                           muster_barrier_destroy);
  const char* const format = asked.json ? "json" : "text";
  std::size_t needed = 0;
  throw_if_failed(muster_barrier_explain(handle, format, nullptr, 0, &needed));
  std::string text(needed, '\0');
  throw_if_failed(muster_barrier_explain(handle, format, text.data(), text.size(), nullptr));
  text.pop_back();
  if (!asked.json) {
    fmt::print("{}", in_columns(text));
    return;
  }
  Json json;
  json["results"].push_back(Json::parse(text));
  fmt::print("{}", format_json(json));
}

}  // namespace

void add_explain(Command& app) {
  auto asked = std::make_shared<Options>();
  Command* command = app.add_subcommand(
      "explain",
      "What a barrier with these options would be: algorithm, groups, waiting, memory, and why");
  command
      ->add_option("-p,--participants", asked->participants,
                   "Ranks or threads that meet at the barrier")
      ->capture_default_str();
  command->add_option("-a,--algorithm", asked->algorithm, "A name that `muster list` shows")
      ->capture_default_str();
  command->add_option("-w,--wait", asked->wait, "How they wait: a name that `muster list` shows")
      ->capture_default_str();
  command->add_option(
      "-t,--topology", asked->topology,
      "hwloc XML file or synthetic description (default: $MUSTER_TOPOLOGY, else this machine)");
  command
      ->add_option("-m,--map-by", asked->map_by,
                   "Rank i is bound by core, numa or socket; none: not bound")
      ->capture_default_str();
  command->add_option(
      "-b,--bindings", asked->bindings,
      "One for each rank: PUs (0-3,8), a PMIx locality string (SK0:L31:CR32:NM1), or none");
  command->add_flag("--shared", asked->shared, "The participants are processes");
  command->add_flag("--split", asked->split, "arrive and depart are called apart");
  command->add_flag("--json", asked->json, "One JSON object with an array `results`");
  command->callback([asked] { explain(*asked); });
}

}  // namespace muster
